//! By which way entries leave memory, as the messages of baselines tell it.
//!
//! [`Reason`] is the guard's, with all it knows; a [`Departure`] is its kind,
//! which can be read back from the words of a message and counted.

use crate::consolidate::guard::Reason;

/// The kind of a [`Reason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Departure {
    Merged,
    Demoted,
    Unsupported,
    Contradicted,
    Retired,
    /// By the person's hand: their edit, note, forget or revert.
    TakenAway,
    /// Without a reason, in a result that the person took as it was.
    Accepted,
    Unexplained,
    /// No message tells of it: another program wrote it, or the list was cut.
    Untold,
}

impl Departure {
    /// With the beginning of its words in a message; what has none is never
    /// told there.
    const ALL: [(Self, Option<&'static str>); 9] = [
        (Self::Merged, Some("merged into ")),
        (Self::Demoted, Some("demoted to ")),
        (Self::Unsupported, Some("its sources are gone")),
        (Self::Contradicted, Some("contradicted by ")),
        (Self::Retired, Some("retired: ")),
        (Self::TakenAway, Some("the person took it away")),
        (Self::Accepted, Some("accepted by the person")),
        (Self::Unexplained, Some("no reason given")),
        (Self::Untold, None),
    ];

    /// From the words of [`Reason::words`].
    pub(crate) fn parse(words: &str) -> Self {
        let begins = |start: Option<&str>| start.is_some_and(|start| words.starts_with(start));
        let mut all = Self::ALL.iter();
        let found = all.find(|(_, start)| begins(*start));
        found.map_or(Self::Untold, |(departure, _)| *departure)
    }

    /// For machines.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::Demoted => "demoted",
            Self::Unsupported => "unsupported",
            Self::Contradicted => "contradicted",
            Self::Retired => "retired",
            Self::TakenAway => "taken_away",
            Self::Accepted => "accepted",
            Self::Unexplained => "unexplained",
            Self::Untold => "untold",
        }
    }

    /// After a number of entries.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Merged => "merged into others",
            Self::Demoted => "demoted to handbook or recap",
            Self::Unsupported => "without sources left",
            Self::Contradicted => "contradicted by something newer",
            Self::Retired => "retired by the worker",
            Self::TakenAway => "taken away by you",
            Self::Accepted => "gone with a result you accepted",
            Self::Unexplained => "gone without a reason",
            Self::Untold => "gone untold",
        }
    }
}

impl From<&Reason> for Departure {
    fn from(reason: &Reason) -> Self {
        match reason {
            Reason::Withheld => Self::TakenAway,
            Reason::Merged { .. } => Self::Merged,
            Reason::Demoted { .. } => Self::Demoted,
            Reason::Unsupported => Self::Unsupported,
            Reason::Contradicted { .. } => Self::Contradicted,
            Reason::Retired { .. } => Self::Retired,
            Reason::Accepted => Self::Accepted,
            Reason::Unexplained => Self::Unexplained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Departure;
    use crate::consolidate::guard::Reason;
    use crate::domain::path::TreePath;

    #[test]
    fn every_reason_is_read_back_from_its_words() {
        let path = TreePath::parse("MEMORY.md").unwrap();
        let words = "no reason given".to_owned();
        let (into, to) = (path.clone(), path);
        for reason in [
            Reason::Withheld,
            Reason::Merged { into },
            Reason::Demoted { to },
            Reason::Unsupported,
            Reason::Contradicted { by: words.clone() },
            Reason::Retired { reason: words },
            Reason::Accepted,
            Reason::Unexplained,
        ] {
            let departure = Departure::from(&reason);
            assert_eq!(Departure::parse(&reason.words()), departure, "{reason:?}");
        }
        assert_eq!(Departure::parse("and 3 more"), Departure::Untold);
    }
}
