//! Walls around what a program may write, kept by the kernel (Landlock).
//!
//! Reading stays as it is: a program that was started with a person's own
//! login must be able to find it. Writing, making, renaming and removing work
//! only below the folders of [`Walls`]; signals reach nobody outside.
//!
//! # Limits
//!
//! A kernel keeps the rules it knows. What [`support`] calls `Full` are those
//! of Landlock's third version (Linux 6.2). A program that can persuade
//! another one to write for it, through a socket, gets past any wall of ours.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where a program may write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Walls {
    /// Files and folders may be made, changed and removed here, but no
    /// symbolic link, device or socket.
    pub(crate) plain: Vec<PathBuf>,
    /// Everything may be done here.
    pub(crate) free: Vec<PathBuf>,
}

/// How much of it the kernel keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Support {
    Full,
    /// An old version: some writes get past, such as cutting a file short.
    Partial,
    None,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        })
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;

    use landlock::{
        ABI, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, Scope, make_bitflags, path_beneath_rules,
    };

    use super::{Support, Walls};

    /// Writes to these are no writes.
    const DEVICES: [&str; 5] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];

    fn writes() -> BitFlags<AccessFs> {
        AccessFs::from_write(ABI::V3)
    }

    /// What is not done to plain files and folders.
    fn odd() -> BitFlags<AccessFs> {
        make_bitflags!(AccessFs::{ MakeSym | MakeChar | MakeBlock | MakeFifo | MakeSock })
    }

    pub(crate) fn support() -> Support {
        let knows = |abi| {
            Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_write(abi))
                .and_then(Ruleset::create)
                .is_ok()
        };
        match () {
            () if knows(ABI::V3) => Support::Full,
            () if knows(ABI::V1) => Support::Partial,
            () => Support::None,
        }
    }

    pub(crate) fn close_in(walls: &Walls) -> io::Result<()> {
        restrict(walls).map_err(io::Error::other)
    }

    fn restrict(walls: &Walls) -> Result<(), RulesetError> {
        Ruleset::default()
            .handle_access(writes())?
            .scope(Scope::Signal)?
            .create()?
            .add_rules(path_beneath_rules(&walls.plain, writes() & !odd()))?
            .add_rules(path_beneath_rules(&walls.free, writes()))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::WriteFile))?
            .restrict_self()?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;

    use super::{Support, Walls};

    pub(crate) fn support() -> Support {
        Support::None
    }

    pub(crate) fn close_in(_: &Walls) -> io::Result<()> {
        Ok(())
    }
}

/// What this kernel keeps; asking changes nothing.
pub(crate) fn support() -> Support {
    kernel::support()
}

/// Puts this thread and what it starts behind `walls`, for good, as far as the
/// kernel can keep them.
///
/// # Errors
///
/// When a kernel that knows such rules does not take these.
pub(super) fn close_in(walls: &Walls) -> std::io::Result<()> {
    kernel::close_in(walls)
}
