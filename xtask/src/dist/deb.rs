//! The Debian package, with a systemd unit of the user for `anyhook serve`.

use std::fmt::Write as _;

use super::archive::{self, PackedFile};
use super::{REPOSITORY, Release, SUMMARY, read};

pub(super) fn package(release: &Release) -> Result<(String, Vec<u8>), String> {
    let documents = "usr/share/doc/anyhook";
    let mut files = vec![
        PackedFile::program("usr/bin/anyhook", &release.program),
        PackedFile::text(
            "usr/lib/systemd/user/anyhook.service",
            read("packaging/anyhook.service")?,
        ),
        PackedFile::text(format!("{documents}/copyright"), copyright(release)?),
        PackedFile::text(
            format!("{documents}/changelog.gz"),
            archive::gzip(read("CHANGELOG.md")?.as_bytes())?,
        ),
    ];
    for mut file in release.legal_files()? {
        file.path = format!("{documents}/{}", file.path);
        files.push(file);
    }
    for (name, page) in &release.man {
        let path = format!("usr/share/man/man1/{name}.gz");
        files.push(PackedFile::text(path, archive::gzip(page)?));
    }
    for (name, text) in &release.completions {
        let path = match *name {
            "anyhook.bash" => "usr/share/bash-completion/completions/anyhook",
            "_anyhook" => "usr/share/zsh/vendor-completions/_anyhook",
            "anyhook.fish" => "usr/share/fish/vendor_completions.d/anyhook.fish",
            _ => continue,
        };
        files.push(PackedFile::text(path, text.clone()));
    }
    let (version, architecture) = (&release.version, release.platform.debian);
    let size: usize = files
        .iter()
        .map(|file| file.content.len().div_ceil(1024))
        .sum();
    let mut control = format!(
        "Package: anyhook\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: The anyhook authors <anyhook@users.noreply.github.com>\n\
         Installed-Size: {size}\nSection: utils\nPriority: optional\nHomepage: {REPOSITORY}\n"
    );
    if release.is_dynamic() {
        control.push_str("Depends: libc6\n");
    }
    let _ = write!(
        control,
        "Description: {}\n One binary between coding agents and the programs that watch, block or\n \
         change what they do: one manifest, every agent.\n",
        SUMMARY.trim_end_matches('.')
    );
    let control = [PackedFile::text("control", control)];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        (
            "control.tar.gz",
            archive::tar_gz(&control, release.time, true)?,
        ),
        ("data.tar.gz", archive::tar_gz(&files, release.time, true)?),
    ];
    let name = format!("anyhook_{version}_{architecture}.deb");
    Ok((name, archive::ar(&members, release.time)))
}

fn copyright(release: &Release) -> Result<String, String> {
    Ok(format!(
        "anyhook is licensed under the Apache License 2.0 or the MIT license, at your choice.\n\
         The Apache License is in /usr/share/common-licenses/Apache-2.0.\n\n{}\n{}",
        read("LICENSE-MIT")?,
        release.licenses
    ))
}
