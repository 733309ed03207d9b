//! File names of recaps: `<stamp>-<hash>[-<slug>].md` (reference 3.1).
//!
//! A name depends on the thread id and the slug alone wherever the id holds a
//! time, so that a recap that is made again replaces its file.

use crate::domain::id::ThreadId;
use crate::domain::time::Timestamp;

/// Most characters of a slug; the model's answer is cut there.
const SLUG_CHARS_MAX: usize = 60;

/// Digits of the base 62 hash, most significant first.
const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// 62 to the power of 4: the hash has exactly four digits.
const HASH_RANGE: u32 = 14_776_336;

/// 100 ns steps between 15 October 1582, where the clock of old UUIDs starts,
/// and the Unix epoch.
const UUID_EPOCH_OFFSET: i64 = 122_192_928_000_000_000;

/// The name without `.md`.
///
/// The stamp is the time inside the thread id (UUID versions 7, 1 and 6), else
/// `updated_at`. `slug` is what the model proposed; see [`slug`].
pub(crate) fn stem(thread_id: &ThreadId, updated_at: Timestamp, proposed: Option<&str>) -> String {
    let uuid = parse_uuid(thread_id.as_str());
    let stamp = uuid.and_then(uuid_time).unwrap_or(updated_at).file_stamp();
    let hash = hash(thread_id, uuid);
    match proposed.and_then(slug) {
        Some(slug) => format!("{stamp}-{hash}-{slug}"),
        None => format!("{stamp}-{hash}"),
    }
}

/// Makes a slug of what the model proposed: ASCII letters and digits in lower
/// case, everything else `_`, at most 60 characters, no trailing `_`.
pub(crate) fn slug(proposed: &str) -> Option<String> {
    let mapped: String = proposed
        .chars()
        .take(SLUG_CHARS_MAX)
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
            _ => '_',
        })
        .collect();
    let trimmed = mapped.trim_end_matches('_');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// The slug in a recap's file name, when it has the shape of [`stem`].
pub(crate) fn slug_of(file_name: &str) -> Option<&str> {
    let stem = file_name.strip_suffix(".md")?;
    let (stamp, rest) = stem.split_at_checked(19)?;
    Timestamp::parse_file_stamp(stamp)?;
    let (hash, slug) = rest.strip_prefix('-')?.split_once('-')?;
    let is_hash = hash.len() == 4 && hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_hash && !slug.is_empty()).then_some(slug)
}

fn hash(thread_id: &ThreadId, uuid: Option<u128>) -> String {
    let seed = match uuid {
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
        Some(uuid) => uuid as u32,
        None => (thread_id.as_str().bytes()).fold(0_u32, |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(u32::from(byte))
        }),
    };
    let mut value = seed % HASH_RANGE;
    let mut digits = ['0'; 4];
    for digit in digits.iter_mut().rev() {
        *digit = char::from(DIGITS[(value % 62) as usize]);
        value /= 62;
    }
    digits.into_iter().collect()
}

fn parse_uuid(text: &str) -> Option<u128> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    let digits = groups.concat();
    let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all_hex.then(|| u128::from_str_radix(&digits, 16).ok())?
}

fn uuid_time(uuid: u128) -> Option<Timestamp> {
    let bits = |shift: u32, width: u32| i64::try_from((uuid >> shift) & ((1 << width) - 1)).ok();
    match (uuid >> 76) & 0xf {
        7 => Some(Timestamp::from_millis(bits(80, 48)?)),
        1 => gregorian(bits(64, 12)? << 48 | bits(80, 16)? << 32 | bits(96, 32)?),
        6 => gregorian(bits(80, 48)? << 12 | bits(64, 12)?),
        _ => None,
    }
}

fn gregorian(steps: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(
        steps.checked_sub(UUID_EPOCH_OFFSET)?.div_euclid(10_000),
    ))
}

#[cfg(test)]
mod tests {
    use super::{slug, slug_of, stem};
    use crate::domain::id::ThreadId;
    use crate::domain::time::Timestamp;

    #[track_caller]
    fn check(thread_id: &str, proposed: Option<&str>, expected: &str) {
        let thread_id = ThreadId::parse(thread_id).unwrap();
        let updated_at = Timestamp::parse_rfc3339("2026-01-02T03:04:05Z").unwrap();
        assert_eq!(stem(&thread_id, updated_at, proposed), expected);
    }

    #[test]
    fn the_time_inside_the_thread_id_names_the_file() {
        let v7 = "0194f5a6-89ab-7cde-8123-456789abcdef";
        check(v7, None, "2025-02-11T15-35-19-jqmb");
        check(v7, Some("Fix: CI"), "2025-02-11T15-35-19-jqmb-fix__ci");
        check(v7, Some("???"), "2025-02-11T15-35-19-jqmb");
        let v1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846";
        check(v1, None, "2022-02-22T19-22-22-YFYW");
        let v6 = "1ec9414c-232a-6b00-b3c8-9f6bdeced846";
        check(v6, None, "2022-02-22T19-22-22-YFYW");
    }

    #[test]
    fn other_ids_take_the_time_of_the_session() {
        let v4 = "00000000-0000-4000-8000-000000000001";
        check(v4, None, "2026-01-02T03-04-05-0001");
        check("b", None, "2026-01-02T03-04-05-001A");
    }

    #[test]
    fn slugs_are_plain_and_short() {
        let long = "Unsafe Slug/With Spaces & Symbols + EXTRA_LONG_12345_67890_ABCDE_fghij_klmno";
        let short = "unsafe_slug_with_spaces___symbols___extra_long_12345_67890_a";
        assert_eq!(slug(long).as_deref(), Some(short));
        assert_eq!(slug("修复").as_deref(), None);
        assert_eq!(slug("ä1").as_deref(), Some("_1"));
        assert_eq!(slug(""), None);
    }

    #[test]
    fn names_give_their_slug_back() {
        for (name, expected) in [
            ("2026-12-01T05-11-34-53TB-my_slug.md", Some("my_slug")),
            ("2026-12-01T05-11-34-53TB-a-b.md", Some("a-b")),
            ("2026-12-01T05-11-34-53TB.md", None),
            ("notes.md", None),
            ("2026-99-01T05-11-34-53TB-x.md", None),
        ] {
            assert_eq!(slug_of(name), expected, "{name}");
        }
    }
}
