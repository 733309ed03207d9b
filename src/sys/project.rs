//! Project identity from `.git` files, without running Git.

use std::path::Path;

use crate::domain::project::Project;

/// Names the code base that `cwd` is part of.
pub(crate) fn identify(cwd: &Path, repository_url: Option<&str>) -> Project {
    let _ = repository_url;
    Project::new(cwd.to_string_lossy().into_owned())
}
