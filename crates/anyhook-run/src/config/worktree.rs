//! Which repository a folder belongs to, without running git.
//!
//! Agents work in git worktrees, which are new folders of a repository that the
//! user knows already. The trees of one repository share its *common directory*:
//! the `.git` of the main tree finds it directly, that of a worktree is a file
//! with `gitdir: <common>/worktrees/<name>`.
//!
//! Anyone can write such a file, so a tree [is linked](GitTree::is_linked) only
//! if the repository knows it too: the folder of its git data lies in the
//! repository, and points back to the tree. A folder from elsewhere could
//! otherwise borrow the approval of a trusted project, and with it run what the
//! approval does not cover.

use std::path::{Path, PathBuf};

use anyhook_util::fs::read_text;
use anyhook_util::paths::canonicalize;

use crate::run::exec::command::normalize_path;

/// The files that git writes contain one path each.
const MAX_LINK_BYTES: u64 = 16 * 1024;

/// The folder of a repository's worktrees in its common directory.
const WORKTREES: &str = "worktrees";

/// A checked out tree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitTree {
    /// The tree's folder.
    pub(crate) top: PathBuf,
    /// The repository's common directory.
    pub(crate) common_dir: PathBuf,
    /// The repository knows this tree.
    pub(crate) is_linked: bool,
    /// As far as is known, it is the main tree of the repository.
    is_main: bool,
    /// The files that say so.
    pub(super) link_files: Vec<PathBuf>,
}

impl GitTree {
    /// The innermost tree that contains a folder, whose path is canonical.
    pub(crate) fn containing(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    /// The tree at a folder, whose path is canonical.
    pub(crate) fn at(top: &Path) -> Option<Self> {
        let git = top.join(".git");
        let metadata = std::fs::symlink_metadata(&git).ok()?;
        let tree = |common_dir: PathBuf, is_linked: bool| Self {
            top: top.to_owned(),
            common_dir,
            is_linked,
            is_main: false,
            link_files: vec![git.clone()],
        };
        if metadata.is_dir() {
            return Some(tree(git.clone(), true));
        }
        // A symbolic link may lead to the repository of another tree.
        if let Ok(real) = canonicalize(&git)
            && real.is_dir()
        {
            let is_own = real.parent() == Some(top);
            return Some(tree(real, is_own));
        }
        let text = read_text(&git, MAX_LINK_BYTES).ok()?;
        let data = top.join(text.strip_prefix("gitdir:")?.trim());
        let Ok(data) = canonicalize(&data) else {
            // Of a repository that was moved, or a worktree that was pruned.
            let data = normalize_path(&data);
            return Some(tree(common_by_name(&data), false));
        };
        let (common_file, back_file) = (data.join("commondir"), data.join("gitdir"));
        let Ok(common) = read_text(&common_file, MAX_LINK_BYTES) else {
            // A submodule, or a repository with its data elsewhere: nothing points back.
            let mut tree = tree(common_by_name(&data), false);
            // `.git` in another folder contains the data of the tree there.
            tree.is_main = data == tree.common_dir && data.file_name() != git.file_name();
            return Some(tree);
        };
        let common = canonicalize(&data.join(common.trim())).ok()?;
        let is_inside = data.parent() == Some(&common.join(WORKTREES));
        let back = read_text(&back_file, MAX_LINK_BYTES).unwrap_or_default();
        let back = data.join(back.trim());
        let points_back = back.file_name() == git.file_name()
            && back
                .parent()
                .and_then(|top| canonicalize(top).ok())
                .as_deref()
                == Some(top);
        let mut tree = tree(common, is_inside && points_back);
        tree.link_files.extend([common_file, back_file]);
        Some(tree)
    }

    /// The path of a folder in it.
    pub(crate) fn relative<'a>(&self, folder: &'a Path) -> Option<&'a Path> {
        folder.strip_prefix(&self.top).ok()
    }

    /// Whether approval in this tree may count for the repository.
    pub(super) fn represents_repository(&self) -> bool {
        self.is_linked || self.is_main
    }
}

/// The common directory for the folder of a tree's data, by its name.
fn common_by_name(data: &Path) -> PathBuf {
    let parent = data.parent();
    let of_worktree = parent.filter(|parent| parent.file_name().is_some_and(|n| n == WORKTREES));
    let common = of_worktree.and_then(Path::parent);
    common.unwrap_or(data).to_owned()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A repository `main` with the worktree `tree`, as git writes them.
    fn repository(base: &Path) {
        write(&base.join("main/.git/HEAD"), "");
        let data = base.join("main/.git/worktrees/tree");
        write(&data.join("commondir"), "../..\n");
        let shown = |path: &Path| format!("{}\n", path.display());
        write(&data.join("gitdir"), &shown(&base.join("tree/.git")));
        write(
            &base.join("tree/.git"),
            &format!("gitdir: {}", shown(&data)),
        );
        std::fs::create_dir_all(base.join("tree/sub/deep")).unwrap();
    }

    #[test]
    fn a_worktree_belongs_to_its_repository_if_both_say_so() {
        let scratch = tempfile::tempdir().unwrap();
        let base = &anyhook_util::paths::canonicalize(scratch.path()).unwrap();
        repository(base);
        let common = base.join("main/.git");
        let main = GitTree::containing(&base.join("main")).unwrap();
        assert_eq!((&main.common_dir, main.is_linked), (&common, true));
        let tree = GitTree::containing(&base.join("tree/sub/deep")).unwrap();
        assert_eq!((&tree.common_dir, tree.is_linked), (&common, true));
        assert_eq!(tree.top, base.join("tree"));
        let relative = tree.relative(&base.join("tree/sub")).map(Path::to_owned);
        assert_eq!(relative, Some(PathBuf::from("sub")));

        // Relative links, as newer versions of git write them.
        let data = base.join("main/.git/worktrees/tree");
        write(
            &base.join("tree/.git"),
            "gitdir: ../main/.git/worktrees/tree\n",
        );
        write(&data.join("gitdir"), "../../../../tree/.git\n");
        assert!(GitTree::at(&base.join("tree")).unwrap().is_linked);
    }

    #[test]
    fn a_folder_that_only_claims_to_be_a_worktree_is_not_linked() {
        let scratch = tempfile::tempdir().unwrap();
        let base = &anyhook_util::paths::canonicalize(scratch.path()).unwrap();
        repository(base);
        let common = base.join("main/.git");
        let claim = |path: &str, gitdir: &str| {
            write(
                &base.join(path).join(".git"),
                &format!("gitdir: {gitdir}\n"),
            );
            let tree = GitTree::at(&base.join(path)).unwrap();
            assert!(!tree.is_linked, "{path}");
            tree.common_dir
        };
        let data = common.join("worktrees/tree");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        // A copy of the worktree, the main tree's data, a pruned worktree.
        assert_eq!(claim("copy", &text(&data)), common);
        assert_eq!(claim("other", &text(&common)), common);
        assert!(
            !GitTree::at(&base.join("other"))
                .unwrap()
                .represents_repository()
        );
        let pruned = text(&common.join("worktrees/pruned"));
        assert_eq!(claim("pruned", &pruned), common);
        // Data of its own that name the repository and point back.
        let forged = base.join("forged");
        write(&forged.join("data/commondir"), &text(&common));
        write(&forged.join("data/gitdir"), &text(&forged.join(".git")));
        assert_eq!(claim("forged", "data"), common);
        // A symbolic link to the data of another tree.
        let link = base.join("link");
        std::fs::create_dir_all(&link).unwrap();
        std::os::unix::fs::symlink(&common, link.join(".git")).unwrap();
        let linked = GitTree::at(&link).unwrap();
        assert_eq!((linked.common_dir, linked.is_linked), (common, false));
        // Data elsewhere are the tree's own.
        std::fs::create_dir_all(base.join("data/repo.git")).unwrap();
        claim("separate", &text(&base.join("data/repo.git")));
        assert!(
            GitTree::at(&base.join("separate"))
                .unwrap()
                .represents_repository()
        );
        for text in ["", "gitdir", "gitdir:", "x"] {
            write(&base.join("odd/.git"), text);
            let tree = GitTree::at(&base.join("odd"));
            assert!(tree.is_none_or(|tree| !tree.is_linked), "{text}");
        }
    }
}
