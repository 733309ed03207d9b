//! Diagnostics as JSON and SARIF.

use std::fmt::Write as _;

use serde::Serialize;

use super::Diagnostic;
use super::rules::{Level, RULES};

/// A diagnostic as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct JsonDiagnostic<'a> {
    code: &'a str,
    level: &'a str,
    path: &'a str,
    /// 1-based.
    line: usize,
    /// 1-based, in characters.
    column: usize,
    /// Bytes in the file, the end not included.
    start: usize,
    end: usize,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> JsonDiagnostic<'a> {
    pub(crate) fn of(diagnostic: &'a Diagnostic) -> Self {
        Self {
            code: diagnostic.code,
            level: diagnostic.level.label(),
            path: diagnostic.path.as_str(),
            line: diagnostic.line,
            column: diagnostic.column,
            start: diagnostic.bytes.start,
            end: diagnostic.bytes.end,
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
        }
    }
}

/// All of them as one JSON array.
pub(crate) fn json(diagnostics: &[Diagnostic]) -> String {
    let all: Vec<_> = diagnostics.iter().map(JsonDiagnostic::of).collect();
    serde_json::to_string_pretty(&all).expect("strings and numbers are JSON")
}

/// All of them as a SARIF 2.1.0 log.
pub(crate) fn sarif(diagnostics: &[Diagnostic]) -> String {
    let rules: Vec<_> = (RULES.iter())
        .map(|rule| {
            serde_json::json!({
                "id": rule.code,
                "shortDescription": { "text": rule.about },
                "defaultConfiguration": { "level": sarif_level(rule.level) },
            })
        })
        .collect();
    let results: Vec<_> = (diagnostics.iter())
        .map(|diagnostic| {
            serde_json::json!({
                "ruleId": diagnostic.code,
                "level": sarif_level(diagnostic.level),
                "message": { "text": diagnostic.message },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": percent_encoded(diagnostic.path.as_str()) },
                        "region": {
                            "startLine": diagnostic.line,
                            "startColumn": diagnostic.column,
                        },
                    },
                }],
            })
        })
        .collect();
    let log = serde_json::json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "memrev",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&log).expect("strings and numbers are JSON")
}

const fn sarif_level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

fn percent_encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
