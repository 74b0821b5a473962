//! Whether the administrator's word is above the user's variables.

use std::path::Path;

use crate::discover::Found;
use crate::policy::Rulebook;

/// Whether `ANYHOOK=0`, `ANYHOOK_TRUST` and `ANYHOOK_MANAGED_DIR` do not count:
/// an administrator has made the platform's managed folder, only root can
/// change it, and its policy does not say `allow_env_override`.
pub fn is_locked(folder: &Path) -> bool {
    is_roots(folder) && {
        let policies = Found::managed(folder).policies;
        !Rulebook::load(&policies, &mut Vec::new()).allows_env_override()
    }
}

#[cfg(unix)]
fn is_roots(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(folder)
        .is_ok_and(|data| data.is_dir() && data.uid() == 0 && data.mode() & 0o022 == 0)
}

/// Who owns a folder is not asked here.
#[cfg(not(unix))]
fn is_roots(_folder: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_folder_of_roots_is_above_the_user() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let mode = |mode| std::fs::set_permissions(folder, PermissionsExt::from_mode(mode));
        let is_root = rustix::process::geteuid().is_root();
        mode(0o755).unwrap();
        assert_eq!(is_locked(folder), is_root);
        mode(0o775).unwrap();
        assert!(!is_locked(folder));
        mode(0o755).unwrap();
        let policy = folder.join("policy.json");
        std::fs::write(&policy, r#"{"allow_env_override": true}"#).unwrap();
        assert!(!is_locked(folder));
        std::fs::write(&policy, r#"{"allow_env_override": false}"#).unwrap();
        assert_eq!(is_locked(folder), is_root);
        assert!(!is_locked(&folder.join("none")));
    }
}
