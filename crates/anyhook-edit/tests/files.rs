//! The disk: what a write keeps, what it refuses, what is gone afterwards.

#![cfg(test)]

mod support;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhook_edit::{
    ContentChange, EditOptions, EditableFile, FileError, FileLock, GeneratedFile, InstallLog,
    UndoMethod, WriteStep, read_text, remove_created, write_atomic, write_observed,
};
use anyhook_model::Format;
use serde_json::json;
use support::{entry, ours, path};
use tempfile::TempDir;

fn config(folder: &TempDir, name: &str) -> EditableFile {
    EditableFile {
        path: folder.path().join(name),
        state: folder.path().join("state"),
        format: Format::Jsonc,
        options: EditOptions::default(),
    }
}

fn install(config: &EditableFile, event: &str) -> anyhook_edit::ContentChange {
    let place = path(&["hooks", event]);
    config
        .install(&mut |editor| editor.append_unless(&place, &entry(event), &ours).map(drop))
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_that_we_made_goes_with_its_folders() {
    let folder = TempDir::new().unwrap();
    let config = config(&folder, "a/b/settings.json");
    let change = install(&config, "Stop");
    assert!(
        change
            .diff("settings.json")
            .starts_with("--- /dev/null\n+++ settings.json\n")
    );
    assert!(config.path.exists());
    assert_eq!(InstallLog::list(&config.state).unwrap().len(), 1);
    let change = config.uninstall(&[], &ours).unwrap();
    assert_eq!((change.method, change.after), (UndoMethod::Exact, None));
    assert_eq!(names(folder.path()), ["state"]);
    assert_eq!(InstallLog::list(&config.state).unwrap(), []);
}

#[test]
fn a_folder_of_ours_with_something_of_theirs_stays() {
    let folder = TempDir::new().unwrap();
    let config = config(&folder, "a/b/settings.json");
    install(&config, "Stop");
    fs::write(folder.path().join("a/mine"), "x").unwrap();
    config.uninstall(&[], &ours).unwrap();
    assert_eq!(names(&folder.path().join("a")), ["mine"]);
}

#[test]
fn a_file_that_we_made_stays_when_the_user_added_to_it() {
    let folder = TempDir::new().unwrap();
    let mut config = config(&folder, "hooks.json");
    config.options.preamble = json!({"version": 1}).as_object().unwrap().clone();
    install(&config, "Stop");
    let text = read_text(&config.path).unwrap().unwrap();
    let text = text.replace("\"hooks\": {", "\"hooks\": {\n    \"Mine\": [],");
    fs::write(&config.path, text).unwrap();
    let change = config.uninstall(&[], &ours).unwrap();
    let rest: serde_json::Value = serde_json::from_str(&change.after.unwrap()).unwrap();
    assert_eq!(rest, json!({"version": 1, "hooks": {"Mine": []}}));
}

#[test]
fn a_preamble_alone_does_not_keep_a_file() {
    let folder = TempDir::new().unwrap();
    for format in [Format::Json, Format::Toml] {
        let mut config = config(&folder, "hooks");
        config.format = format;
        config.options.preamble = json!({"version": 1}).as_object().unwrap().clone();
        install(&config, "Stop");
        let text = read_text(&config.path).unwrap().unwrap();
        fs::write(&config.path, text.replace("30", "31")).unwrap();
        let change = config.uninstall(&[], &ours).unwrap();
        assert_eq!(
            (change.method, change.after),
            (UndoMethod::Structural, None),
            "{format:?}"
        );
    }
}

#[test]
fn installing_in_turns_with_the_user_comes_out_clean() {
    let folder = TempDir::new().unwrap();
    let config = config(&folder, "settings.json");
    fs::write(&config.path, "{\n  // mine\n  \"a\": 1\n}").unwrap();
    install(&config, "Stop");
    assert!(
        install(&config, "Stop").is_empty(),
        "a second run changes nothing"
    );
    let text = read_text(&config.path).unwrap().unwrap();
    fs::write(&config.path, text.replace("\"a\": 1", "\"a\": [1, 2]")).unwrap();
    install(&config, "PreToolUse");
    let change = config.uninstall(&[], &ours).unwrap();
    assert_eq!(change.method, UndoMethod::Relocated);
    assert_eq!(
        read_text(&config.path).unwrap().unwrap(),
        "{\n  // mine\n  \"a\": [1, 2]\n}"
    );
}

#[test]
fn a_lost_record_is_made_up_for_by_looks() {
    let folder = TempDir::new().unwrap();
    let config = config(&folder, "settings.json");
    fs::write(&config.path, "{\"hooks\": {\"Stop\": [1]}}").unwrap();
    install(&config, "Stop");
    fs::remove_dir_all(&config.state).unwrap();
    let change = config
        .uninstall(&[path(&["hooks", "Stop"])], &ours)
        .unwrap();
    assert_eq!(change.after.unwrap(), "{\"hooks\": {\"Stop\": [1]}}");
}

#[test]
fn a_preview_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let config = config(&folder, "settings.json");
    fs::write(&config.path, "{}\n").unwrap();
    let before = read_text(&config.path).unwrap();
    let (after, _) = config
        .edited_text(before.as_deref(), &mut |editor| {
            editor.append(&path(&["hooks", "Stop"]), &json!(1))
        })
        .unwrap();
    let change = ContentChange::written(before, after);
    assert_eq!(
        change.diff("settings.json"),
        "--- settings.json\n+++ settings.json\n@@ -1 +1,5 @@\n-{}\n+{\n+  \"hooks\": {\n+    \"Stop\": [1]\n+  }\n+}\n"
    );
    assert_eq!(names(folder.path()), ["settings.json"]);
    assert_eq!(read_text(&config.path).unwrap().unwrap(), "{}\n");
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let config = config(&folder, "settings.json");
    let refuse = |bytes: &[u8]| {
        fs::write(&config.path, bytes).unwrap();
        let error = config
            .install(&mut |editor| editor.append(&path(&["hooks", "Stop"]), &json!(1)))
            .unwrap_err();
        assert_eq!(fs::read(&config.path).unwrap(), bytes);
        assert_eq!(InstallLog::list(&config.state).unwrap(), []);
        error
    };
    let error = refuse(b"{\n  \"a\": 1\n  \"b\": 2\n}");
    let expected = format!(
        "`{}`: line 2, column 9: missing comma",
        config.path.display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(refuse(b"\xff\xfe{\0}\0"), FileError::NotText(_)));
}

#[test]
fn a_failing_disk_leaves_no_trace() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("new/deep/settings.json");
    for fail_at in [
        WriteStep::FoldersCreated,
        WriteStep::TempCreated,
        WriteStep::HalfWritten,
        WriteStep::Written,
        WriteStep::ModeSet,
        WriteStep::Synced,
    ] {
        let result = write_observed(&target, b"{}", &mut |_, step| {
            if step == fail_at {
                Err(io::Error::other("disk full"))
            } else {
                Ok(())
            }
        });
        assert!(result.unwrap_err().to_string().contains("disk full"));
        assert!(names(folder.path()).is_empty(), "{fail_at:?}");
    }
}

#[test]
fn a_lock_that_is_held_is_waited_for_and_then_reported() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("x");
    let held = FileLock::acquire(folder.path(), &target, Duration::ZERO).unwrap();
    let error = FileLock::acquire(folder.path(), &target, Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error, FileError::Busy(_)));
    drop(held);
    FileLock::acquire(folder.path(), &target, Duration::ZERO).unwrap();
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let error = write_atomic(folder.path(), b"x").unwrap_err();
    assert!(matches!(error, FileError::NotAFile(_)));
    assert!(matches!(
        read_text(folder.path()),
        Err(FileError::NotAFile(_))
    ));
}

#[test]
fn removing_what_is_gone_already_is_fine() {
    let folder = TempDir::new().unwrap();
    remove_created(&folder.path().join("x"), &[folder.path().join("y")]).unwrap();
}

#[test]
fn a_generated_file_comes_and_goes_but_never_over_somebody_elses() {
    let folder = TempDir::new().unwrap();
    let placed = GeneratedFile {
        path: folder.path().join("hooks/PreToolUse"),
        state: folder.path().join("state"),
        executable: true,
    };
    let no = |_: &str| false;
    placed.install("#!/bin/sh\n", &no).unwrap();
    placed.install("#!/bin/sh\n# newer\n", &no).unwrap();
    assert!(
        placed
            .install("#!/bin/sh\n# newer\n", &no)
            .unwrap()
            .is_empty()
    );
    assert_eq!(placed.uninstall(&no).unwrap().after, None);
    assert_eq!(names(folder.path()), ["state"]);

    fs::create_dir(folder.path().join("hooks")).unwrap();
    fs::write(&placed.path, "theirs").unwrap();
    let error = placed.install("ours", &no).unwrap_err();
    assert!(matches!(error, FileError::NotOurs(_)));
    assert!(placed.uninstall(&no).unwrap().is_empty());
    assert_eq!(fs::read(&placed.path).unwrap(), b"theirs");
    placed.install("ours", &|text| text == "theirs").unwrap();
    assert_eq!(fs::read(&placed.path).unwrap(), b"ours");
}

#[test]
fn a_comment_where_none_is_allowed_does_not_keep_us_in() {
    let folder = TempDir::new().unwrap();
    let mut config = config(&folder, "settings.json");
    config.format = Format::Json;
    fs::write(&config.path, "{\"a\": 1}").unwrap();
    install(&config, "Stop");
    let text = read_text(&config.path).unwrap().unwrap();
    fs::write(&config.path, format!("// oops\n{text}")).unwrap();
    config
        .uninstall(&[path(&["hooks", "Stop"])], &ours)
        .unwrap();
    assert_eq!(fs::read(&config.path).unwrap(), b"// oops\n{\"a\": 1}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    use super::*;

    #[test]
    fn the_mode_stays() {
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("x");
        for mode in [0o600, 0o644, 0o755, 0o660] {
            fs::write(&target, "old").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
            write_atomic(&target, b"new").unwrap();
            assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn who_is_reading_the_old_file_reads_it_to_the_end() {
        use std::io::Read as _;
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("x");
        fs::write(&target, "old").unwrap();
        let mut reader = fs::File::open(&target).unwrap();
        write_atomic(&target, b"newer").unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "old", "the file is replaced, never written into");
        assert_eq!(fs::read(&target).unwrap(), b"newer");
    }

    #[test]
    fn the_owner_stays_where_that_is_allowed() {
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("x");
        fs::write(&target, "old").unwrap();
        // Refused unless we are root; then the owner is our own and must stay so too.
        let _refused = chown(&target, Some(12345), Some(12346));
        let before = fs::metadata(&target).unwrap();
        write_atomic(&target, b"new").unwrap();
        let after = fs::metadata(&target).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    }

    #[test]
    fn a_script_can_be_run_and_a_lost_run_bit_is_mended() {
        let folder = TempDir::new().unwrap();
        let placed = GeneratedFile {
            path: folder.path().join("script"),
            state: folder.path().join("state"),
            executable: true,
        };
        for _ in 0..2 {
            placed.install("#!/bin/sh\nexit 7\n", &|_| false).unwrap();
            let status = std::process::Command::new(&placed.path).status().unwrap();
            assert_eq!(status.code(), Some(7));
            fs::set_permissions(&placed.path, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }

    #[test]
    fn the_content_is_private_until_the_mode_is_known() {
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("x");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        let mut seen = 0;
        write_observed(&target, b"secret", &mut |_, step| {
            if step == WriteStep::Renamed || step == WriteStep::FolderSynced {
                return Ok(());
            }
            for name in names(folder.path()) {
                let mode = fs::metadata(folder.path().join(name))?.mode();
                assert_eq!(mode & 0o077, 0, "{step:?}");
                seen += 1;
            }
            Ok(())
        })
        .unwrap();
        assert!(seen > 6);
    }

    #[test]
    fn a_link_stays_a_link_even_one_to_nowhere() {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("dotfiles")).unwrap();
        let link = folder.path().join("settings.json");
        symlink("dotfiles/real.json", &link).unwrap();
        write_atomic(&link, b"one").unwrap();
        write_atomic(&link, b"two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let real = folder.path().join("dotfiles/real.json");
        assert_eq!(fs::read(&real).unwrap(), b"two");
        remove_created(&link, &[]).unwrap();
        assert!(!real.exists());
    }

    #[test]
    fn a_link_and_its_file_share_one_lock_and_one_record() {
        let folder = TempDir::new().unwrap();
        let real = config(&folder, "real.json");
        let link = config(&folder, "link.json");
        symlink(&real.path, &link.path).unwrap();
        install(&link, "Stop");
        let held = FileLock::acquire(&real.state, &link.path, Duration::ZERO).unwrap();
        assert!(FileLock::acquire(&real.state, &real.path, Duration::ZERO).is_err());
        drop(held);
        assert_eq!(real.uninstall(&[], &ours).unwrap().after, None);
        assert!(!real.path.exists());
    }

    #[test]
    fn links_in_a_circle_are_refused() {
        let folder = TempDir::new().unwrap();
        let link = folder.path().join("x");
        symlink(&link, &link).unwrap();
        assert!(write_atomic(&link, b"x").is_err());
    }

    #[test]
    fn a_protected_file_is_left_alone() {
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("x");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o444)).unwrap();
        let error = write_atomic(&target, b"new").unwrap_err();
        assert!(matches!(error, FileError::ReadOnly(_)));
        assert_eq!(fs::read(&target).unwrap(), b"old");
    }
}
