//! Instants, always in UTC.

use std::fmt;

use jiff::Timestamp as JiffTimestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const FILE_STAMP: &str = "%Y-%m-%dT%H-%M-%S";

/// An instant in milliseconds since the Unix epoch.
///
/// Milliseconds because transcripts have them and the age and idle limits of
/// eligibility are inclusive to the millisecond. The ledger and recap headers
/// hold whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Timestamp(i64);

impl Timestamp {
    /// 9999-12-30: later than anything that happens, and still a date that
    /// can be printed and read.
    pub(crate) const FOR_EVER: Self = Self::from_seconds(253_402_128_000);

    pub(crate) const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub(crate) const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    pub(crate) const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub(crate) const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The same instant without its milliseconds.
    pub(crate) const fn floor_to_second(self) -> Self {
        Self::from_seconds(self.seconds())
    }

    pub(crate) const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    pub(crate) const fn minus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_sub(seconds.saturating_mul(1000)))
    }

    pub(crate) const fn minus_days(self, days: i64) -> Self {
        self.minus_seconds(days.saturating_mul(86_400))
    }

    /// Reads RFC 3339 with any offset, such as `2026-12-01T05:06:35.938Z`.
    pub(crate) fn parse_rfc3339(text: &str) -> Option<Self> {
        let parsed: JiffTimestamp = text.trim().parse().ok()?;
        Some(Self(parsed.as_millisecond()))
    }

    /// Reads the date of an HTTP header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub(crate) fn parse_http_date(text: &str) -> Option<Self> {
        let parsed = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
        Some(Self(parsed.timestamp().as_millisecond()))
    }

    /// Reads the stamp at the start of file names, `2026-12-01T05-33-44`, as UTC.
    pub(crate) fn parse_file_stamp(text: &str) -> Option<Self> {
        let civil = DateTime::strptime(FILE_STAMP, text).ok()?;
        let instant = TimeZone::UTC.to_timestamp(civil).ok()?;
        Some(Self(instant.as_millisecond()))
    }

    /// `2026-12-01T05-33-44`: for file names.
    pub(crate) fn file_stamp(self) -> String {
        self.civil().strftime(FILE_STAMP).to_string()
    }

    /// `2026-12-01`, the day in UTC.
    pub(crate) fn date(self) -> String {
        self.civil().strftime("%Y-%m-%d").to_string()
    }

    fn civil(self) -> DateTime {
        let (low, high) = (JiffTimestamp::MIN, JiffTimestamp::MAX);
        let millis = self.0.clamp(low.as_millisecond(), high.as_millisecond());
        let instant = JiffTimestamp::from_millisecond(millis).unwrap_or(JiffTimestamp::UNIX_EPOCH);
        TimeZone::UTC.to_datetime(instant)
    }
}

/// RFC 3339 in whole seconds with a numeric offset, as recap headers have it:
/// `2026-12-01T05:33:44+00:00`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.civil().strftime("%Y-%m-%dT%H:%M:%S+00:00"))
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn reads_any_offset_and_prints_utc() {
        for (text, printed) in [
            ("2026-12-01T05:06:35.938Z", "2026-12-01T05:06:35+00:00"),
            ("2026-12-01T07:06:35+02:00", "2026-12-01T05:06:35+00:00"),
            ("1969-12-31T23:59:59.500Z", "1969-12-31T23:59:59+00:00"),
        ] {
            let instant = Timestamp::parse_rfc3339(text).unwrap();
            assert_eq!(instant.to_string(), printed);
        }
        assert_eq!(Timestamp::parse_rfc3339("yesterday"), None);
    }

    #[test]
    fn dates_of_http_headers_are_read() {
        let instant = Timestamp::parse_http_date("Tue, 10 Mar 2026 12:00:05 GMT").unwrap();
        assert_eq!(instant.to_string(), "2026-03-10T12:00:05+00:00");
        assert_eq!(Timestamp::parse_http_date("soon"), None);
    }

    #[test]
    fn file_stamps_round_trip() {
        let instant = Timestamp::parse_file_stamp("2025-02-11T15-35-19").unwrap();
        assert_eq!(instant.file_stamp(), "2025-02-11T15-35-19");
        assert_eq!(instant.date(), "2025-02-11");
        assert_eq!(Timestamp::parse_file_stamp("2025-99-11T15-35-19"), None);
    }
}
