//! New objects as one flushed pack, and small packs made one.
//!
//! gix writes loose objects and flushes nothing. A loose object costs an
//! inode and a flush of its own, and flushing the whole file system makes us
//! wait for what everybody else wrote. A pack is two files for any number.
//!
//! # Pruning
//!
//! Nothing names new objects until main moves, and a person may run
//! `git gc --prune=now` at any moment. So a pack gets a `.keep` file before it
//! gets its name, which every Git program respects, and loses it when it is
//! named or given up. One that a killed process left is swept by recovery.
//!
//! # Crash safety
//!
//! The pack is flushed before the index that makes it visible gets its name.
//! [`Store::tidy_packs`] removes packs only after the one that holds the same
//! objects is in place.
//!
//! # Limits
//!
//! The objects of one commit are held in memory, of what is tidied at most
//! [`PACK_CONTENT_BYTES`] and one object or small pack more. Packs have no deltas.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gix::zlib::{Compression, stream::deflate};

use crate::domain::id::ObjectId;
use crate::store::error::StoreError;
use crate::store::{Store, StoreLock, gix_id, id_of};
use crate::sys::fs;
use crate::sys::ids::hex;
use crate::sys::stop::point;
use crate::sys::swap;

/// More small packs than this are made one. Git's own limit is 50.
const SMALL_PACKS_MAX: usize = 40;

/// A larger pack is left as it is, in bytes.
const SMALL_PACK_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Content that is held in memory before a pack is written, in bytes.
pub(super) const PACK_CONTENT_BYTES: usize = 32 * 1024 * 1024;

/// What a `.keep` file of ours says; one of a person says something else.
const KEEP_MARK: &str = "memrev: until a ref names these objects\n";

/// A larger `.keep` file is not ours, in bytes.
const KEEP_BYTES_MAX: u64 = 1024;

/// A new commit on disk, its objects kept from being pruned until this is
/// dropped.
#[must_use]
#[derive(Debug)]
pub(super) struct Written {
    pub(super) commit: ObjectId,
    /// All that was written with it.
    objects: Vec<ObjectId>,
    /// Without an extension.
    pack: PathBuf,
}

impl Drop for Written {
    fn drop(&mut self) {
        // A failure leaves what recovery sweeps.
        remove_keep(&self.pack.with_extension("keep")).ok();
    }
}

pub(super) type Objects = BTreeMap<gix::ObjectId, (gix::objs::Kind, Vec<u8>)>;

impl Store {
    /// A view of the repository whose new objects stay in memory until
    /// [`Store::persist`].
    pub(super) fn writer(&self) -> gix::Repository {
        self.repository().with_object_memory()
    }

    /// Writes the new objects of `writer` to disk, flushed; `commit` is the
    /// one that names the others.
    pub(super) fn persist(
        &self,
        writer: &gix::Repository,
        commit: ObjectId,
    ) -> Result<Written, StoreError> {
        let new = writer.objects.reset_object_memory().unwrap_or_default();
        let objects: Objects = new
            .iter()
            .map(|(id, object)| (*id, object.clone()))
            .collect();
        let pack = (Pack::of(&objects)).map_err(self.while_trying_to("pack new objects"))?;
        let written = Written {
            commit,
            objects: objects.keys().map(|id| id_of(id)).collect(),
            pack: self.pack_path(&pack),
        };
        let keep = written.pack.with_extension("keep");
        if !fs::is_taken(&keep) {
            fs::make_folders(&self.pack_folder())?;
            fs::write_unflushed(&keep, KEEP_MARK.as_bytes(), false)?;
        }
        point("objects.keep_written");
        self.write_pack(&pack)?;
        Ok(written)
    }

    /// Whether what was written is still there. A repository that is open for
    /// long would not notice.
    ///
    /// # Errors
    ///
    /// [`StoreError::Pruned`] when it is not.
    pub(super) fn assert_written(&self, written: &Written) -> Result<(), StoreError> {
        let has = |extension| fs::is_taken(&written.pack.with_extension(extension));
        if has("pack") && has("idx") {
            return Ok(());
        }
        let fresh = Self::open(self.paths.clone())?.repository();
        let mut objects = written.objects.iter();
        match objects.find(|id| !fresh.has_object(gix_id(**id))) {
            Some(id) => Err(StoreError::Pruned { id: *id }),
            None => Ok(()),
        }
    }

    /// Removes what killed processes of ours left beside packs. The caller
    /// holds the store's lock, so no living one needs any.
    pub(super) fn sweep_keeps(&self) -> Result<(), StoreError> {
        for entry in fs::list(&self.pack_folder())? {
            if (entry.path.extension()).is_some_and(|extension| extension == "keep") {
                remove_keep(&entry.path)?;
            }
        }
        Ok(())
    }

    /// Writes objects as one pack, flushed.
    pub(super) fn write_objects(&self, objects: &Objects) -> Result<(), StoreError> {
        let pack = (Pack::of(objects)).map_err(self.while_trying_to("pack objects"))?;
        self.write_pack(&pack)?;
        Ok(())
    }

    fn pack_folder(&self) -> PathBuf {
        self.git_dir().join("objects").join("pack")
    }

    /// Without an extension.
    fn pack_path(&self, pack: &Pack) -> PathBuf {
        self.pack_folder().join(format!("pack-{}", pack.checksum))
    }

    fn write_pack(&self, pack: &Pack) -> Result<PathBuf, StoreError> {
        let folder = self.pack_folder();
        fs::make_folders(&folder)?;
        let target = self.pack_path(pack);
        for (name, bytes) in [("pack", &pack.data), ("idx", &pack.index)] {
            let side = self.private_dir().join(name).with_extension("new");
            fs::make_folders(&self.private_dir())?;
            fs::remove(&side)?;
            fs::write_unflushed(&side, bytes, false)?;
            swap::flush_file(&side)?;
            swap::move_over(&side, &target.with_extension(name))?;
            point("objects.file_placed");
        }
        fs::flush_folder(&folder)?;
        Ok(target)
    }

    /// Makes larger packs of the small ones when there are too many of them.
    /// Not beside a publication. Nothing that a pack holds is dropped, and what
    /// a person marked to be kept stays as it is.
    ///
    /// # Errors
    ///
    /// When an object cannot be read or a file not be written or removed.
    pub(crate) fn tidy_packs(&self, lock: &StoreLock) -> Result<(), StoreError> {
        self.assert_locked(lock);
        let small = self.small_packs()?;
        if small.len() <= SMALL_PACKS_MAX || fs::is_taken(&self.record_file()) {
            return Ok(());
        }
        let repository = self.repository();
        let mut objects = Objects::new();
        let mut bytes = 0;
        let mut joined: Vec<PathBuf> = Vec::new();
        for path in small {
            let index = gix::odb::pack::index::File::at(&path, gix::hash::Kind::Sha1);
            let index = index.map_err(self.while_trying_to("read the index of a pack"))?;
            for number in 0..index.num_objects() {
                let id = index.oid_at_index(number).to_owned();
                let mut object = self.find(&repository, id)?;
                bytes += object.data.len();
                objects.insert(id, (object.kind, std::mem::take(&mut object.data)));
            }
            joined.push(path);
            if PACK_CONTENT_BYTES < bytes {
                self.join(&objects, &joined)?;
                objects.clear();
                joined.clear();
                bytes = 0;
            }
        }
        self.join(&objects, &joined)
    }

    /// One pack of `objects`, which are all that `joined` have; then those go.
    fn join(&self, objects: &Objects, joined: &[PathBuf]) -> Result<(), StoreError> {
        if joined.len() <= 1 {
            return Ok(());
        }
        let pack = (Pack::of(objects)).map_err(self.while_trying_to("join packs"))?;
        let whole = self.write_pack(&pack)?.with_extension("idx");
        point("objects.packs_joined");
        for index in joined.iter().filter(|index| **index != whole) {
            // Without its index nobody looks for the pack.
            fs::remove(index)?;
            for other in ["rev", "pack"] {
                fs::remove(&index.with_extension(other))?;
            }
            point("objects.pack_removed");
        }
        Ok(())
    }

    /// The index files of small packs that are free to go.
    fn small_packs(&self) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.pack_folder();
        let has = |index: &Path, other: &str| fs::is_taken(&index.with_extension(other));
        let is_free = |index: &PathBuf| {
            let size = fs::size_and_time(&index.with_extension("pack")).map(|(size, _)| size);
            let marks = ["keep", "promisor", "mtimes", "bitmap"];
            index
                .extension()
                .is_some_and(|extension| extension == "idx")
                && size.is_some_and(|size| size <= SMALL_PACK_BYTES_MAX)
                && !marks.iter().any(|mark| has(index, mark))
        };
        let files = fs::list(&folder)?.into_iter().map(|entry| entry.path);
        Ok(files.filter(is_free).collect())
    }
}

/// Removes a `.keep` file of ours; a person's stays.
fn remove_keep(keep: &Path) -> Result<(), StoreError> {
    let is_ours = fs::read(keep, KEEP_BYTES_MAX).is_ok_and(|text| text == KEEP_MARK.as_bytes());
    if is_ours {
        fs::remove(keep)?;
    }
    Ok(())
}

/// The two files of a pack (gitformat-pack(5), both of version 2).
struct Pack {
    data: Vec<u8>,
    index: Vec<u8>,
    /// Of `data`, in hexadecimal: its name.
    checksum: String,
}

impl Pack {
    fn of(objects: &Objects) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let count = u32::try_from(objects.len())?;
        let mut data = Vec::new();
        data.extend_from_slice(b"PACK");
        data.extend_from_slice(&2_u32.to_be_bytes());
        data.extend_from_slice(&count.to_be_bytes());
        let mut places = Vec::with_capacity(objects.len());
        for (kind, content) in objects.values() {
            let start = data.len();
            data.extend(entry_header(*kind, content.len()));
            let mut deflate = deflate::Write::new(&mut data, Compression::BEST_SPEED);
            deflate.write_all(content)?;
            deflate.flush()?;
            places.push((u32::try_from(start)?, crc32(&data[start..])));
        }
        let checksum = sha1(&data)?;
        data.extend_from_slice(checksum.as_bytes());
        Ok(Self {
            index: index_of(objects, &places, checksum)?,
            checksum: hex(checksum.as_bytes()),
            data,
        })
    }
}

/// Kind and size: four bits of the size in the first byte, seven in each
/// further one.
fn entry_header(kind: gix::objs::Kind, size: usize) -> Vec<u8> {
    let kind: u8 = match kind {
        gix::objs::Kind::Commit => 1,
        gix::objs::Kind::Tree => 2,
        gix::objs::Kind::Blob => 3,
        gix::objs::Kind::Tag => 4,
    };
    let low = |size: usize, mask: u8| size.to_le_bytes()[0] & mask;
    let mut bytes = vec![kind << 4 | low(size, 0x0f)];
    let mut rest = size >> 4;
    while rest != 0 {
        *bytes.last_mut().expect("the first byte is there") |= 0x80;
        bytes.push(low(rest, 0x7f));
        rest >>= 7;
    }
    bytes
}

/// Offsets below 2 GiB only; larger packs fail before, on their offsets.
fn index_of(
    objects: &Objects,
    places: &[(u32, u32)],
    checksum: gix::ObjectId,
) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut index = Vec::with_capacity(1100 + objects.len() * 28);
    index.extend_from_slice(b"\xfftOc");
    index.extend_from_slice(&2_u32.to_be_bytes());
    let mut ids = objects.keys().peekable();
    let mut seen = 0_u32;
    for first in 0..=u8::MAX {
        while ids.next_if(|id| id.first_byte() == first).is_some() {
            seen += 1;
        }
        index.extend_from_slice(&seen.to_be_bytes());
    }
    for id in objects.keys() {
        index.extend_from_slice(id.as_bytes());
    }
    for (_, crc) in places {
        index.extend_from_slice(&crc.to_be_bytes());
    }
    for (offset, _) in places {
        if i32::try_from(*offset).is_err() {
            return Err("the objects of one commit have more than 2 GiB".into());
        }
        index.extend_from_slice(&offset.to_be_bytes());
    }
    index.extend_from_slice(checksum.as_bytes());
    let own = sha1(&index)?;
    index.extend_from_slice(own.as_bytes());
    Ok(index)
}

fn sha1(bytes: &[u8]) -> Result<gix::ObjectId, gix::Error> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(bytes);
    hasher.try_finalize()
}

/// CRC-32 as in zlib and gitformat-pack(5).
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0_u32; 256];
        let mut byte = 0;
        while byte < 256 {
            #[expect(clippy::cast_possible_truncation, reason = "below 256")]
            let mut value = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                let carry = if value & 1 == 1 { 0xedb8_8320 } else { 0 };
                value = value >> 1 ^ carry;
                bit += 1;
            }
            table[byte] = value;
            byte += 1;
        }
        table
    };
    let step = |crc: u32, byte: &u8| {
        let at = usize::from(crc.to_le_bytes()[0] ^ byte);
        TABLE[at] ^ crc >> 8
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::{crc32, entry_header};

    #[test]
    fn checksums_and_headers_are_those_of_the_format() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(entry_header(gix::objs::Kind::Blob, 5), [0x35]);
        assert_eq!(entry_header(gix::objs::Kind::Tree, 300), [0xac, 0x12]);
    }
}
