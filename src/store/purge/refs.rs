//! Refs, the stash and the ends of a shallow clone, with the new ids.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gix::bstr::ByteSlice as _;

use crate::domain::id::ObjectId;
use crate::store::error::StoreError;
use crate::store::purge::rewrite::{NAME_MARK, Rewrite};
use crate::store::purge::{id, with_new_ids};
use crate::sys::fs;

const MAIN: &str = "refs/heads/main";
const STASH_LOG: &str = "logs/refs/stash";

/// A ref and what it names.
pub(super) struct Ref {
    pub(super) name: String,
    pub(super) target: RefTarget,
}

pub(super) enum RefTarget {
    Object(ObjectId),
    Ref(String),
}

/// One entry of the stash: a line of its log.
pub(super) struct Stashed {
    pub(super) ids: [ObjectId; 2],
    rest: Vec<u8>,
}

impl Rewrite<'_> {
    pub(super) fn refs(&self) -> Result<Vec<Ref>, StoreError> {
        let attempt = "list refs";
        let platform = self.repository.references();
        let platform = platform.map_err(self.failed(attempt))?;
        let mut refs = Vec::new();
        for reference in platform.all().map_err(self.failed(attempt))? {
            let reference = reference.map_err(self.failed(attempt))?;
            let name = reference.name().as_bstr().to_string();
            let target = match reference.target().try_id() {
                Some(target) => RefTarget::Object(id(target)),
                None => match reference.target().try_name() {
                    Some(name) => RefTarget::Ref(name.as_bstr().to_string()),
                    None => continue,
                },
            };
            refs.push(Ref { name, target });
        }
        refs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(refs)
    }

    /// The stash is a list that Git keeps in a log.
    pub(super) fn stash(&self) -> Result<Vec<Stashed>, StoreError> {
        let file = self.old.git_dir().join(STASH_LOG);
        if !fs::is_taken(&file) {
            return Ok(Vec::new());
        }
        let text = fs::read(&file, u64::MAX)?;
        let mut entries = Vec::new();
        for line in text.lines() {
            let parse = |part: Option<&[u8]>| ObjectId::parse(std::str::from_utf8(part?).ok()?);
            let mut parts = line.splitn(3, |byte| *byte == b' ');
            let (from, to) = (parse(parts.next()), parse(parts.next()));
            if let (Some(from), Some(to), Some(rest)) = (from, to, parts.next()) {
                let rest = rest.to_vec();
                entries.push(Stashed {
                    ids: [from, to],
                    rest,
                });
            }
        }
        Ok(entries)
    }

    pub(super) fn write_refs(&self, refs: &[Ref]) -> Result<(), StoreError> {
        let mut packed = BTreeMap::new();
        for one in refs {
            let name = self.ref_name(&one.name);
            match &one.target {
                RefTarget::Object(old) => {
                    let Some(new) = self.done.get(old) else {
                        continue;
                    };
                    if name == MAIN {
                        let file = self.new.git_dir().join(MAIN);
                        fs::write_unflushed(&file, format!("{new}\n").as_bytes(), false)?;
                    } else {
                        packed.insert(name, *new);
                    }
                }
                RefTarget::Ref(target) => {
                    let file = self.new.git_dir().join(&name);
                    if let Some(folder) = file.parent() {
                        fs::make_folders(folder)?;
                    }
                    let text = format!("ref: {}\n", self.ref_name(target));
                    fs::write_unflushed(&file, text.as_bytes(), false)?;
                }
            }
        }
        let mut text = String::from("# pack-refs with: sorted \n");
        for (name, id) in packed {
            let _ = writeln!(text, "{id} {name}");
        }
        let file = self.new.git_dir().join("packed-refs");
        Ok(fs::write_unflushed(&file, text.as_bytes(), false)?)
    }

    fn ref_name(&self, name: &str) -> String {
        let has_it = |text: &str| (self.scrub.bytes)(text.as_bytes()).is_some();
        if !has_it(name) {
            return name.to_owned();
        }
        // Part by part: a name must not end up outside of `refs/`.
        let parts = name.split('/');
        let parts = parts.map(|part| if has_it(part) { NAME_MARK } else { part });
        let name = parts.collect::<Vec<_>>().join("/");
        if has_it(&name) {
            return format!("refs/heads/{NAME_MARK}");
        }
        name
    }

    pub(super) fn write_stash(&self, stash: &[Stashed]) -> Result<(), StoreError> {
        let mut text: Vec<u8> = Vec::new();
        for entry in stash {
            let [from, to] = entry
                .ids
                .map(|id| self.done.get(&id).copied().unwrap_or(id));
            text.extend_from_slice(format!("{from} {to} ").as_bytes());
            let rest = (self.scrub.bytes)(&entry.rest).unwrap_or_else(|| entry.rest.clone());
            let rest = with_new_ids(&rest, |id| self.done.get(&id).copied()).unwrap_or(rest);
            text.extend_from_slice(&rest);
            text.push(b'\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        let file = self.new.git_dir().join(STASH_LOG);
        if let Some(folder) = file.parent() {
            fs::make_folders(folder)?;
        }
        Ok(fs::write_unflushed(&file, &text, false)?)
    }

    /// Where a clone was cut off.
    pub(super) fn write_shallow(&self) -> Result<(), StoreError> {
        let text = fs::read_text_if_any(&self.old.git_dir().join("shallow"), 1 << 20)?;
        let Some(text) = text else {
            return Ok(());
        };
        let ids = text.lines().filter_map(ObjectId::parse);
        let mut out = String::new();
        for id in ids {
            let _ = writeln!(out, "{}", self.done.get(&id).copied().unwrap_or(id));
        }
        let file = self.new.git_dir().join("shallow");
        Ok(fs::write_unflushed(&file, out.as_bytes(), false)?)
    }
}
