//! The first generation: one pretty-printed JSON document per session.

use std::io::{self, Read};

use serde_json::value::RawValue;

use crate::sessions::codex::reader::Reader;
use crate::sessions::codex::wire::Document;
use crate::sessions::elide::Elider;

/// Most bytes of a document that are kept, long strings shortened. Real ones
/// have some hundred kilobytes.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Reads a document into `reader`; `Ok(Err)` says why it is none.
///
/// # Errors
///
/// When the source cannot be read.
pub(in crate::sessions) fn read_document(
    mut source: impl Read,
    reader: &mut Reader<'_>,
) -> io::Result<Result<(), String>> {
    let mut elider = Elider::new(DOCUMENT_BYTES_MAX);
    elider.begin();
    let mut chunk = vec![0; 256 * 1024];
    loop {
        match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => elider.push(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let kept = elider.finish();
    if kept.is_lost {
        return Ok(Err("the document is too large".to_owned()));
    }
    let text = String::from_utf8_lossy(kept.bytes);
    let text = text.trim_start_matches('\u{FEFF}');
    let document: Document<'_> = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) if error.is_eof() => return Ok(Err("the document is cut short".to_owned())),
        Err(_) => return Ok(Err("it is no JSON document".to_owned())),
    };
    let (Some(session), Some(items)) = (document.session.get(), &document.items) else {
        return Ok(Err("the document holds no session".to_owned()));
    };
    reader.begin_document(session);
    for (index, item) in items.iter().enumerate() {
        reader.document_item(index as u64 + 1, RawValue::get(item));
    }
    Ok(Ok(()))
}
