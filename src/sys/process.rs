//! Who this process is, and whether another one is provably gone.

use std::fmt;
use std::sync::LazyLock;

/// A process that cannot be mistaken for a later one with the same number.
///
/// Written as `<pid>/<start>/<boot>`; parts the system does not tell are `0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u32,
    /// Clock ticks between boot and the start of the process.
    pub(crate) started_ticks: u64,
    /// The kernel's id of this boot.
    pub(crate) boot_id: String,
}

/// Asked of the system once: claims compare with it many times a session.
static OWN: LazyLock<ProcessIdentity> = LazyLock::new(|| {
    let pid = std::process::id();
    ProcessIdentity {
        pid,
        started_ticks: started_ticks(pid).unwrap_or(0),
        boot_id: boot_id(),
    }
});

impl ProcessIdentity {
    /// This process.
    pub(crate) fn current() -> Self {
        OWN.clone()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        Some(Self {
            pid: parts.next()?.parse().ok()?,
            started_ticks: parts.next()?.parse().ok()?,
            boot_id: parts.next()?.to_owned(),
        })
    }

    /// Whether the process has provably ended: another boot, no process of
    /// that number, or one that started at another time. Where the system
    /// tells too little the answer is no.
    pub(crate) fn is_gone(&self) -> bool {
        let boot = OWN.boot_id.as_str();
        if boot == "0" || self.boot_id == "0" || *self == *OWN {
            return false;
        }
        if boot != self.boot_id {
            return true;
        }
        match started_ticks(self.pid) {
            Some(ticks) => ticks != self.started_ticks && self.started_ticks != 0,
            None => !exists(self.pid),
        }
    }
}

/// Whether a process of this number may be there; `true` where nobody tells.
pub(crate) fn may_exist(pid: u32) -> bool {
    exists(pid)
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pid, self.started_ticks, self.boot_id)
    }
}

#[cfg(target_os = "linux")]
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields start after the
    // last one. Field 3 is the state, field 22 the start time (proc(5)).
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    if matches!(fields.first(), Some(&("Z" | "X"))) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn started_ticks(_pid: u32) -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn exists(pid: u32) -> bool {
    // A zombie has ended: nothing of it can still write.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        let state = stat
            .rfind(')')
            .and_then(|at| stat[at + 1..].trim_start().chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

#[cfg(not(target_os = "linux"))]
fn exists(_pid: u32) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn boot_id() -> String {
    "0".to_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::ProcessIdentity;

    #[test]
    fn only_a_provably_ended_process_is_gone() {
        let current = ProcessIdentity::current();
        assert!(!current.is_gone());
        assert_eq!(
            ProcessIdentity::parse(&current.to_string()),
            Some(current.clone())
        );

        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let ended = ProcessIdentity {
            pid,
            ..current.clone()
        };
        assert!(ended.is_gone(), "no process of that number, or a later one");

        let namesake = ProcessIdentity {
            started_ticks: 1,
            ..current.clone()
        };
        assert!(
            namesake.is_gone(),
            "the number was given to another process"
        );

        let before_reboot = ProcessIdentity {
            boot_id: "x".to_owned(),
            ..current.clone()
        };
        assert!(before_reboot.is_gone());

        let unknown = ProcessIdentity {
            boot_id: "0".to_owned(),
            ..current
        };
        assert!(!unknown.is_gone());
    }
}
