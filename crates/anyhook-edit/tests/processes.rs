//! Real processes: killed at every step of a write, and sixteen at once.
//!
//! The children are this test binary, started again with the name of one of the
//! `child_…` tests, which take their instructions from the environment.

#![cfg(test)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhook_edit::{EditOptions, EditableFile, InstallLog, UndoMethod, get};
use anyhook_model::Format;
use serde_json::json;
use support::{entry, ours, path};
use tempfile::TempDir;

const FOLDER: &str = "EDIT_TEST_FOLDER";
const NUMBER: &str = "EDIT_TEST_NUMBER";
const ORIGINAL: &str = "{\n  // mine\n  \"hooks\": {\n    \"Stop\": [\"theirs\"] // keep\n  }\n}\n";

fn config(folder: &Path) -> EditableFile {
    EditableFile {
        path: folder.join("project/settings.json"),
        state: folder.join("state"),
        format: Format::Jsonc,
        options: EditOptions::default(),
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

fn instructions() -> Option<(EditableFile, usize)> {
    let folder = std::env::var_os(FOLDER)?;
    let number = std::env::var(NUMBER).unwrap().parse().unwrap();
    Some((config(Path::new(&folder)), number))
}

/// Dies at the step with this number, without unwinding or cleaning up.
fn die_at(number: usize) -> impl FnMut(&Path, anyhook_edit::WriteStep) -> std::io::Result<()> {
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
    if let Some((config, number)) = instructions() {
        let place = path(&["hooks", "Stop"]);
        config
            .install_observed(
                &mut |editor| editor.append_unless(&place, &entry("x"), &ours).map(drop),
                &mut die_at(number),
            )
            .unwrap();
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_uninstalls_and_dies() {
    if let Some((config, number)) = instructions() {
        config
            .uninstall_observed(&[], &ours, &mut die_at(number))
            .unwrap();
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_adds_its_own() {
    if let Some((config, number)) = instructions() {
        let place = path(&["hooks", "Stop"]);
        config
            .install(&mut |editor| {
                editor.append(&place, &json!({"command": format!("anyhook run {number}")}))
            })
            .unwrap();
    }
}

#[test]
#[ignore = "started by the tests below"]
fn child_adds_the_same() {
    if let Some((config, _)) = instructions() {
        let place = path(&["hooks", "Stop"]);
        config
            .install(&mut |editor| editor.append_unless(&place, &entry("x"), &ours).map(drop))
            .unwrap();
    }
}

fn scratch(original: Option<&str>) -> (TempDir, EditableFile) {
    let folder = TempDir::new().unwrap();
    let config = config(folder.path());
    if let Some(original) = original {
        fs::create_dir(config.path.parent().unwrap()).unwrap();
        fs::write(&config.path, original).unwrap();
    }
    (folder, config)
}

fn read(config: &EditableFile) -> Option<String> {
    fs::read_to_string(&config.path).ok()
}

/// Everything beside the file that a reader of the folder could take for one.
fn strays(config: &EditableFile) -> Vec<String> {
    let Ok(entries) = fs::read_dir(config.path.parent().unwrap()) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "settings.json")
        .collect()
}

/// Runs the child until it gets through, killed one step later each time.
/// `prepare` makes the files before each run, `after` is what it should reach.
fn kill_everywhere(child: &str, prepare: &dyn Fn() -> (TempDir, EditableFile)) -> usize {
    let (folder, whole) = prepare();
    let before = read(&whole);
    assert!(start(child, folder.path(), 0).wait().unwrap().success());
    let after = read(&whole);
    assert_ne!(before, after);

    let mut deaths = 0;
    loop {
        let (folder, config) = prepare();
        if start(child, folder.path(), deaths + 1)
            .wait()
            .unwrap()
            .success()
        {
            return deaths;
        }
        deaths += 1;
        let left = read(&config);
        assert!(left == before || left == after, "step {deaths}: {left:?}");
        for stray in strays(&config) {
            assert!(
                stray.starts_with(".anyhook-tmp-") && !stray.contains("json"),
                "{stray}"
            );
        }
        // The next run gets through, and finds nothing of the dead one in its way.
        assert!(start(child, folder.path(), 0).wait().unwrap().success());
        assert_eq!(read(&config), after, "step {deaths}");
        assert_eq!(strays(&config), [] as [String; 0], "step {deaths}");
        let state = fs::read_dir(&config.state).unwrap();
        for entry in state {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            assert!(!name.starts_with('.'), "step {deaths}: {name}");
        }
        // And uninstalling gives the original back, whatever happened on the way.
        config.uninstall(&[], &ours).unwrap();
        let start = if child == "child_installs_and_dies" {
            &before
        } else {
            &after
        };
        assert_eq!(&read(&config), start, "step {deaths}");
        assert_eq!(InstallLog::list(&config.state).unwrap(), []);
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
        let (folder, config) = scratch(Some(ORIGINAL));
        let place = path(&["hooks", "Stop"]);
        config
            .install(&mut |editor| editor.append(&place, &entry("x")))
            .unwrap();
        (folder, config)
    });
    assert_eq!(deaths, 8);
}

#[test]
fn sixteen_at_once_lose_nothing() {
    let (folder, config) = scratch(Some(ORIGINAL));
    let children: Vec<Child> = (0..16)
        .map(|number| start("child_adds_its_own", folder.path(), number))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = read(&config).unwrap();
    let list = get(&text, config.format, &path(&["hooks", "Stop"]))
        .unwrap()
        .unwrap();
    let list = list.as_array().unwrap();
    assert_eq!((list.len(), &list[0]), (17, &json!("theirs")));
    for number in 0..16 {
        assert!(list.contains(&json!({"command": format!("anyhook run {number}")})));
    }
    let change = config.uninstall(&[], &ours).unwrap();
    assert_eq!(change.method, UndoMethod::Exact);
    assert_eq!(read(&config).unwrap(), ORIGINAL);
    assert_eq!(strays(&config), [] as [String; 0]);
}

#[test]
fn sixteen_at_once_with_the_same_wish_end_in_one() {
    for original in [Some(ORIGINAL), None] {
        let (folder, config) = scratch(original);
        let children: Vec<Child> = (0..16)
            .map(|number| start("child_adds_the_same", folder.path(), number))
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let log = InstallLog::load(&config.state, &config.path)
            .unwrap()
            .unwrap();
        assert_eq!((log.patches.len(), log.existed), (1, original.is_some()));
        config.uninstall(&[], &ours).unwrap();
        assert_eq!(read(&config).as_deref(), original);
        assert_eq!(config.path.parent().unwrap().exists(), original.is_some());
    }
}
