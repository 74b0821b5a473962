use anyhook_util::system::OperatingSystem;

use super::dirs::unix_managed_folder;
use super::*;

fn paths(found: &FoundConfig) -> Vec<(Scope, String)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    found
        .manifests
        .iter()
        .map(|source| {
            (
                source.scope,
                format!("{}/{}", name(&source.root), name(&source.path)),
            )
        })
        .collect()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn every_unix_has_its_own_managed_folder() {
    let folders = [OperatingSystem::MacOs, OperatingSystem::Linux].map(unix_managed_folder);
    let expected = ["/Library/Application Support/anyhook", "/etc/anyhook"];
    assert_eq!(folders, expected);
}

#[test]
fn managed_then_user_then_every_manifest_up_to_the_repository() {
    let scratch = tempfile::tempdir().unwrap();
    let base = &anyhook_util::paths::canonicalize(scratch.path()).unwrap();
    let dirs = Dirs {
        config: base.join("config"),
        state: base.join("state"),
        managed: base.join("managed"),
        home: Some(base.to_owned()),
        problems: Vec::new(),
    };
    write(&base.join("config/hooks.json"), "{}");
    write(&base.join("managed/hooks.yaml"), "{}");
    write(&base.join("above/.anyhook/hooks.yaml"), "not looked at");
    write(&base.join("above/repo/.git/HEAD"), "");
    write(&base.join("above/repo/.anyhook/hooks.yml"), "");
    write(&base.join("above/repo/.anyhook/policy.json"), "{}");
    write(&base.join("above/repo/pkg/.anyhook/hooks.json"), "");
    write(&base.join("above/repo/pkg/src/main"), "");
    let found = discover(&dirs, &base.join("above/repo/pkg/src"));
    assert_eq!(found.root, base.join("above/repo"));
    let expected = [
        (Scope::Managed, "repo/hooks.yaml"),
        (Scope::User, "repo/hooks.json"),
        (Scope::Project, "repo/hooks.yml"),
        (Scope::Project, "pkg/hooks.json"),
    ];
    assert_eq!(
        paths(&found),
        expected.map(|(scope, path)| (scope, path.to_owned()))
    );
    assert_eq!(found.policies.len(), 1);
    assert_eq!(found.problems, []);

    // Above the repository only what has consent, and a folder that does not exist.
    let start = EventFolders::from_folder(&base.join("above/repo/pkg/gone/../gone/deep"));
    let is_approved = |path: &Path| path == base.join("above/.anyhook/hooks.yaml");
    let approvals = Approvals::Known {
        manifest: &is_approved,
        project: &|_| false,
        text_hash: &|_, _| None,
    };
    let found = discover_at(&dirs, &start, approvals);
    assert_eq!(
        paths(&found)[2],
        (Scope::Project, "above/hooks.yaml".to_owned())
    );
    assert_eq!(found.manifests.len(), 5);

    // Several roots.
    let start = EventFolders {
        folders: ["none", "above/repo/pkg", "above"]
            .map(|folder| base.join(folder))
            .to_vec(),
    };
    let found = discover_at(&dirs, &start, Approvals::Ignored);
    let expected = ["above/hooks.yaml", "repo/hooks.yml", "pkg/hooks.json"];
    assert_eq!(
        paths(&found)[2..],
        expected.map(|path| (Scope::Project, path.to_owned()))
    );

    // Outside a repository the walk ends at the home folder.
    let found = discover(&dirs, &base.join("above"));
    assert_eq!(found.root, base.join("above"));
    assert_eq!(found.manifests.len(), 3);
}

#[test]
fn a_file_that_is_not_text_is_a_problem_and_does_not_end_the_search() {
    let scratch = tempfile::tempdir().unwrap();
    let base = &anyhook_util::paths::canonicalize(scratch.path()).unwrap();
    let dirs = Dirs {
        config: base.join("config"),
        state: base.join("state"),
        managed: base.join("none"),
        home: None,
        problems: Vec::new(),
    };
    write(&base.join(".git/HEAD"), "");
    std::fs::create_dir_all(base.join("config/hooks.yaml")).unwrap();
    std::fs::create_dir_all(base.join(".anyhook")).unwrap();
    std::fs::write(base.join(".anyhook/hooks.json"), [0xff, 0xfe, 0]).unwrap();
    let found = discover(&dirs, base);
    assert!(found.manifests.is_empty());
    assert_eq!(found.problems.len(), 2);
}

#[test]
fn folders_by_environment() {
    let lookup = |name: &str| match name {
        "HOME" => Some("/home/me".into()),
        "XDG_STATE_HOME" => Some("/state".into()),
        "ANYHOOK_MANAGED_DIR" => Some("/managed".into()),
        _ => None,
    };
    if cfg!(unix) {
        let dirs = Dirs::from_lookup(lookup);
        assert_eq!(dirs.config, Path::new("/home/me/.config/anyhook"));
        assert_eq!(dirs.state, Path::new("/state/anyhook"));
        assert_eq!(dirs.managed, Path::new("/managed"));
    }
}
