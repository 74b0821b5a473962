//! The Python wheel: the program as a script, without any Python.

use std::fmt::Write as _;

use anyhook_util::hash::sha256;

use super::archive::{self, PackedFile};
use super::{REPOSITORY, Release, SUMMARY, read};

pub(super) fn package(release: &Release) -> Result<(String, Vec<u8>), String> {
    let Release {
        version, platform, ..
    } = release;
    let (information, data) = (
        format!("anyhook-{version}.dist-info"),
        format!("anyhook-{version}.data"),
    );
    let metadata = format!(
        "Metadata-Version: 2.4\nName: anyhook\nVersion: {version}\nSummary: {SUMMARY}\n\
         Home-page: {REPOSITORY}\nLicense-Expression: Apache-2.0 OR MIT\n\
         License-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         License-File: THIRD-PARTY-LICENSES.txt\n\
         Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n{}",
        read("README.md")?
    );
    let mut wheel = "Wheel-Version: 1.0\nGenerator: anyhook\nRoot-Is-Purelib: false\n".to_owned();
    // A program that is not static is for this machine only.
    let tags = match platform.node {
        ("linux", "x64") if release.is_dynamic() => "linux_x86_64",
        ("linux", "arm64") if release.is_dynamic() => "linux_aarch64",
        _ => platform.wheel,
    };
    for tag in tags.split('.') {
        let _ = writeln!(wheel, "Tag: py3-none-{tag}");
    }
    let mut files = vec![
        PackedFile::program(
            format!("{data}/scripts/{}", platform.program_name()),
            &release.program,
        ),
        PackedFile::text(format!("{information}/METADATA"), metadata),
        PackedFile::text(format!("{information}/WHEEL"), wheel),
    ];
    for mut file in release.legal_files()? {
        let is_license = !file.path.starts_with("sbom");
        let folder = if is_license { "licenses" } else { "sboms" };
        file.path = format!("{information}/{folder}/{}", file.path);
        files.push(file);
    }
    for (name, page) in &release.man {
        let path = format!("{data}/data/share/man/man1/{name}");
        files.push(PackedFile::text(path, page.clone()));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut record = String::new();
    for PackedFile { path, content, .. } in &files {
        let digest = archive::base64_url(&bytes_of_hex(&sha256(content)));
        let _ = writeln!(record, "{path},sha256={digest},{}", content.len());
    }
    let path = format!("{information}/RECORD");
    let _ = writeln!(record, "{path},,");
    files.push(PackedFile::text(path, record));
    let name = format!("anyhook-{version}-py3-none-{tags}.whl");
    Ok((name, archive::zip(&files)?))
}

fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digits = text.chars().filter_map(|digit| digit.to_digit(16));
    let digits: Vec<u32> = digits.collect();
    digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |value, digit| value * 16 + digit))
        .filter_map(|byte| u8::try_from(byte).ok())
        .collect()
}
