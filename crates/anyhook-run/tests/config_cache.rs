//! The config cache of a daemon notices every change.
#![cfg(unix)] // changes modes, owners and links
#![cfg(test)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhook_model::HookEvent;
use anyhook_run::Engine;
use anyhook_run::config::discover::Dirs;
use anyhook_run::config::effective::EffectiveConfig;

const HOOKS: &str = "spec: hooks/1.0\nhooks: []\n";

struct CacheScratch {
    _dir: tempfile::TempDir,
    base: PathBuf,
    engine: Engine,
    cwd: PathBuf,
}

impl CacheScratch {
    /// `home/top/repo/src`, with a manifest of the user and one of the project.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap().join("home");
        let dirs = Dirs {
            config: base.join("config"),
            state: base.join("state"),
            managed: base.join("managed"),
            home: Some(base.clone()),
            problems: Vec::new(),
        };
        let mut engine = Engine::new(dirs, false);
        engine.config_cache = Some(Arc::default());
        let world = Self {
            cwd: base.join("top/repo/src"),
            _dir: dir,
            base,
            engine,
        };
        world.write("config/hooks.yaml", HOOKS);
        world.write("top/repo/.git/HEAD", "");
        world.write("top/repo/.anyhook/hooks.yml", HOOKS);
        world.write("top/repo/src/main", "");
        world.write("state/trust/other", "");
        world
    }

    fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn event(&self) -> HookEvent {
        HookEvent {
            event: "before_tool_execute".to_owned(),
            cwd: Some(self.cwd.to_string_lossy().into_owned()),
            ..HookEvent::default()
        }
    }

    fn load(&self) -> Arc<EffectiveConfig> {
        EffectiveConfig::load(&self.engine, &self.event(), false)
    }

    fn is_cached(&self) -> bool {
        EffectiveConfig::from_cache(&self.engine, &self.event()).is_some()
    }
}

/// A situation, and a change of it.
struct Case {
    name: &'static str,
    before: fn(&mut CacheScratch),
    change: fn(&CacheScratch),
}

const fn case(
    name: &'static str,
    before: fn(&mut CacheScratch),
    change: fn(&CacheScratch),
) -> Case {
    Case {
        name,
        before,
        change,
    }
}

fn nothing(_: &mut CacheScratch) {}

fn with_settings(world: &mut CacheScratch) {
    world.write("config/config.yaml", "approvals: { hold: 20 }\n");
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

/// Other content of the same length, with the time of the old one.
fn rewrite_with_same_mtime(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let text = fs::read_to_string(path).unwrap().replace("1.0", "0.1");
    fs::write(path, text).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(modified).unwrap();
}

const CASES: &[Case] = &[
    case("a manifest is edited", nothing, |world| {
        rewrite_with_same_mtime(&world.path("top/repo/.anyhook/hooks.yml"));
    }),
    case("a manifest is replaced", nothing, |world| {
        world.write("new", "spec: hooks/0.1\nhooks: []\n");
        fs::rename(world.path("new"), world.path("top/repo/.anyhook/hooks.yml")).unwrap();
    }),
    case("a manifest is removed", nothing, |world| {
        remove(&world.path("top/repo/.anyhook/hooks.yml"));
    }),
    case("a manifest comes before another", nothing, |world| {
        world.write("top/repo/.anyhook/hooks.yaml", HOOKS);
    }),
    case("the settings are edited", with_settings, |world| {
        world.write("config/config.yaml", "approvals: { hold: 7 }\n");
    }),
    case("the settings come to be", nothing, |world| {
        world.write("config/config.json", "{}");
    }),
    case("the user's manifest is removed", nothing, |world| {
        remove(&world.path("config/hooks.yaml"));
    }),
    case("others may write the user's manifest", nothing, |world| {
        let path = world.path("config/hooks.yaml");
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    }),
    case("others may write the user's folder", nothing, |world| {
        let path = world.path("config");
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }),
    case("a policy comes", nothing, |world| {
        world.write("config/policy.json", "{}");
    }),
    case("the administrator begins to rule", nothing, |world| {
        world.write("managed/policy.json", "{}");
    }),
    case("a project begins below", nothing, |world| {
        world.write("top/repo/src/.anyhook/hooks.yaml", HOOKS);
    }),
    case("a project begins above", nothing, |world| {
        world.write("top/.anyhook/hooks.yaml", HOOKS);
    }),
    case("a repository begins below", nothing, |world| {
        world.write("top/repo/src/.git/HEAD", "");
    }),
    case("an OpenHook consumer appears", nothing, |world| {
        world.write("top/repo/.openhook.json", "{}");
    }),
    case("consent is given", nothing, |world| {
        let manifest = world.path("top/repo/.anyhook/hooks.yml");
        fs::write(world.engine.trust.file(&manifest), "{}").unwrap();
    }),
    case(
        "consent is taken back",
        |world| {
            let manifest = world.path("top/repo/.anyhook/hooks.yml");
            fs::write(world.engine.trust.file(&manifest), "{}").unwrap();
        },
        |world| {
            let manifest = world.path("top/repo/.anyhook/hooks.yml");
            remove(&world.engine.trust.file(&manifest));
        },
    ),
    case(
        "consent is given to a project above",
        |world| world.write("top/.anyhook/hooks.yaml", HOOKS),
        |world| {
            let manifest = world.path("top/.anyhook/hooks.yaml");
            fs::write(world.engine.trust.file(&manifest), "{}").unwrap();
        },
    ),
    case(
        "a link leads elsewhere",
        |world| {
            world.write("top/other/src/main", "");
            symlink(world.path("top/repo"), world.path("link")).unwrap();
            world.cwd = world.path("link/src");
        },
        |world| {
            symlink(world.path("top/other"), world.path("new")).unwrap();
            fs::rename(world.path("new"), world.path("link")).unwrap();
        },
    ),
    case(
        "a link to what is not there leads elsewhere",
        |world| {
            world.write("top/other/main", "");
            symlink(world.path("top/repo"), world.path("link")).unwrap();
            world.cwd = world.path("link/gone/deep");
        },
        |world| {
            symlink(world.path("top/other"), world.path("new")).unwrap();
            fs::rename(world.path("new"), world.path("link")).unwrap();
        },
    ),
    case(
        "the folder comes to be",
        |world| world.cwd = world.path("top/repo/gone/deep"),
        |world| world.write("top/repo/gone/deep/.anyhook/hooks.yaml", HOOKS),
    ),
    case(
        "a manifest is a link, and its file comes to be",
        |world| {
            let link = world.path("top/repo/.anyhook/hooks.yaml");
            world.write("elsewhere/other", "");
            symlink(world.path("elsewhere/hooks.yaml"), link).unwrap();
        },
        |world| world.write("elsewhere/hooks.yaml", HOOKS),
    ),
];

#[test]
fn every_change_is_noticed() {
    let mut worlds = Vec::new();
    for case in CASES {
        let mut world = CacheScratch::new();
        (case.before)(&mut world);
        world.load();
        assert!(!world.is_cached(), "{}: the files are too new", case.name);
        worlds.push(world);
    }
    std::thread::sleep(Duration::from_millis(2600));
    for (case, world) in CASES.iter().zip(&worlds) {
        let first = world.load();
        assert!(world.is_cached(), "{}", case.name);
        assert!(Arc::ptr_eq(&first, &world.load()), "{}", case.name);
        (case.change)(world);
        // A validated entry is trusted for 1 ms.
        std::thread::sleep(Duration::from_millis(2));
        assert!(
            !world.is_cached(),
            "{}: the change was not noticed",
            case.name
        );
        assert!(!Arc::ptr_eq(&first, &world.load()), "{}", case.name);
    }
}

#[test]
fn a_config_behind_a_symbolic_link_is_not_cached() {
    let world = CacheScratch::new();
    symlink(world.path("elsewhere"), world.path("top/.anyhook")).unwrap();
    std::thread::sleep(Duration::from_millis(2600));
    world.load();
    assert!(!world.is_cached());
}

#[test]
fn the_time_for_an_answer_counts_and_follows_the_settings() {
    let mut world = CacheScratch::new();
    with_settings(&mut world);
    let limit = |world: &CacheScratch| world.load().time_limit(&world.event());
    assert_eq!(limit(&world), Duration::from_secs(20));
    world.write("config/config.yaml", "approvals: { hold: 7 }\n");
    assert_eq!(limit(&world), Duration::from_secs(7));
}
