//! Real processes: killed at every step of a write, and sixteen at once.
//!
//! The children are this test binary, started again with the name of one of the
//! `child_…` tests, which are told what to do by the environment.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhook_edit::{Format, How, InstallLog, Options, Site, get};
use serde_json::json;
use support::{entry, ours, path};
use tempfile::TempDir;

const FOLDER: &str = "EDIT_TEST_FOLDER";
const NUMBER: &str = "EDIT_TEST_NUMBER";
const ORIGINAL: &str = "{\n  // mine\n  \"hooks\": {\n    \"Stop\": [\"theirs\"] // keep\n  }\n}\n";

fn site(folder: &Path) -> Site {
    Site {
        path: folder.join("project/settings.json"),
        state: folder.join("state"),
        format: Format::Jsonc,
        options: Options::default(),
    }
}

fn start(child: &str, folder: &Path, number: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored"])
        .env(FOLDER, folder)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn told() -> Option<(Site, usize)> {
    let folder = std::env::var_os(FOLDER)?;
    let number = std::env::var(NUMBER).unwrap().parse().unwrap();
    Some((site(Path::new(&folder)), number))
}

/// Dies at the step with this number, without unwinding or cleaning up.
fn die_at(number: usize) -> impl FnMut(&Path, anyhook_edit::Step) -> std::io::Result<()> {
    let mut step = 0;
    move |_, _| {
        step += 1;
        if step == number {
            std::process::abort();
        }
        Ok(())
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_installs_and_dies() {
    if let Some((site, number)) = told() {
        let place = path(&["hooks", "Stop"]);
        site.install_watched(
            &mut |draft| draft.append_unless(&place, &entry("x"), &ours).map(drop),
            &mut die_at(number),
        )
        .unwrap();
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_uninstalls_and_dies() {
    if let Some((site, number)) = told() {
        site.uninstall_watched(&[], &ours, &mut die_at(number))
            .unwrap();
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_adds_its_own() {
    if let Some((site, number)) = told() {
        let place = path(&["hooks", "Stop"]);
        site.install(&mut |draft| {
            draft.append(&place, &json!({"command": format!("anyhook run {number}")}))
        })
        .unwrap();
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_adds_the_same() {
    if let Some((site, _)) = told() {
        let place = path(&["hooks", "Stop"]);
        site.install(&mut |draft| draft.append_unless(&place, &entry("x"), &ours).map(drop))
            .unwrap();
    }
}

fn scratch(original: Option<&str>) -> (TempDir, Site) {
    let folder = TempDir::new().unwrap();
    let site = site(folder.path());
    if let Some(original) = original {
        fs::create_dir(site.path.parent().unwrap()).unwrap();
        fs::write(&site.path, original).unwrap();
    }
    (folder, site)
}

fn read(site: &Site) -> Option<String> {
    fs::read_to_string(&site.path).ok()
}

/// Everything beside the file that a reader of the folder could take for one.
fn strays(site: &Site) -> Vec<String> {
    let Ok(entries) = fs::read_dir(site.path.parent().unwrap()) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "settings.json")
        .collect()
}

/// Runs the child until it gets through, killed one step later each time.
/// `prepare` makes the files before each run, `after` is what it should reach.
fn kill_everywhere(child: &str, prepare: &dyn Fn() -> (TempDir, Site)) -> usize {
    let (folder, whole) = prepare();
    let before = read(&whole);
    assert!(start(child, folder.path(), 0).wait().unwrap().success());
    let after = read(&whole);
    assert_ne!(before, after);

    let mut deaths = 0;
    loop {
        let (folder, site) = prepare();
        if start(child, folder.path(), deaths + 1)
            .wait()
            .unwrap()
            .success()
        {
            return deaths;
        }
        deaths += 1;
        let left = read(&site);
        assert!(left == before || left == after, "step {deaths}: {left:?}");
        for stray in strays(&site) {
            assert!(
                stray.starts_with(".anyhook-tmp-") && !stray.contains("json"),
                "{stray}"
            );
        }
        // The next run gets through, and finds nothing of the dead one in its way.
        assert!(start(child, folder.path(), 0).wait().unwrap().success());
        assert_eq!(read(&site), after, "step {deaths}");
        assert_eq!(strays(&site), [] as [String; 0], "step {deaths}");
        let state = fs::read_dir(&site.state).unwrap();
        for entry in state {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            assert!(!name.starts_with('.'), "step {deaths}: {name}");
        }
        // And uninstalling gives the original back, whatever happened on the way.
        site.uninstall(&[], &ours).unwrap();
        let start = if child == "child_installs_and_dies" {
            &before
        } else {
            &after
        };
        assert_eq!(&read(&site), start, "step {deaths}");
        assert_eq!(InstallLog::list(&site.state).unwrap(), []);
    }
}

#[test]
fn killed_while_installing_into_a_file() {
    let deaths = kill_everywhere("child_installs_and_dies", &|| scratch(Some(ORIGINAL)));
    assert_eq!(
        deaths, 16,
        "two writes of eight steps each: the record, the file"
    );
}

#[test]
fn killed_while_making_a_file() {
    let deaths = kill_everywhere("child_installs_and_dies", &|| scratch(None));
    assert_eq!(deaths, 16);
}

#[test]
fn killed_while_uninstalling() {
    let deaths = kill_everywhere("child_uninstalls_and_dies", &|| {
        let (folder, site) = scratch(Some(ORIGINAL));
        let place = path(&["hooks", "Stop"]);
        site.install(&mut |draft| draft.append(&place, &entry("x")))
            .unwrap();
        (folder, site)
    });
    assert_eq!(deaths, 8);
}

#[test]
fn sixteen_at_once_lose_nothing() {
    let (folder, site) = scratch(Some(ORIGINAL));
    let children: Vec<Child> = (0..16)
        .map(|number| start("child_adds_its_own", folder.path(), number))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = read(&site).unwrap();
    let list = get(&text, site.format, &path(&["hooks", "Stop"]))
        .unwrap()
        .unwrap();
    let list = list.as_array().unwrap();
    assert_eq!((list.len(), &list[0]), (17, &json!("theirs")));
    for number in 0..16 {
        assert!(list.contains(&json!({"command": format!("anyhook run {number}")})));
    }
    let change = site.uninstall(&[], &ours).unwrap();
    assert_eq!(change.how, How::Exact);
    assert_eq!(read(&site).unwrap(), ORIGINAL);
    assert_eq!(strays(&site), [] as [String; 0]);
}

#[test]
fn sixteen_at_once_with_the_same_wish_end_in_one() {
    for original in [Some(ORIGINAL), None] {
        let (folder, site) = scratch(original);
        let children: Vec<Child> = (0..16)
            .map(|number| start("child_adds_the_same", folder.path(), number))
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let log = InstallLog::load(&site.state, &site.path).unwrap().unwrap();
        assert_eq!((log.patches.len(), log.existed), (1, original.is_some()));
        site.uninstall(&[], &ours).unwrap();
        assert_eq!(read(&site).as_deref(), original);
        assert_eq!(site.path.parent().unwrap().exists(), original.is_some());
    }
}
