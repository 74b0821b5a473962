//! The npm packages: `anyhook`, which only starts the program, and one package per
//! platform with the program itself. No package has an install script.

use serde_json::{Map, Value, json};

use super::archive::{self, PackedFile};
use super::{PLATFORMS, Platform, REPOSITORY, Release, SUMMARY, read};

fn package_name(platform: &Platform) -> String {
    let (system, processor) = platform.node;
    format!("@anyhook/{system}-{processor}")
}

fn common(name: &str, version: &str) -> Map<String, Value> {
    let fields = [
        ("name", json!(name)),
        ("version", json!(version)),
        ("description", json!(SUMMARY)),
        ("license", json!("Apache-2.0 OR MIT")),
        (
            "repository",
            json!({"type": "git", "url": format!("git+{REPOSITORY}.git")}),
        ),
        ("homepage", json!(REPOSITORY)),
    ];
    let fields = fields.into_iter();
    fields.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn pack(
    name: &str,
    version: &str,
    time: u64,
    manifest: Map<String, Value>,
    mut files: Vec<PackedFile>,
) -> Result<(String, Vec<u8>), String> {
    let manifest = format!("{:#}\n", Value::Object(manifest));
    files.push(PackedFile::text("package.json", manifest));
    for file in &mut files {
        file.path = format!("package/{}", file.path);
    }
    let name = name.trim_start_matches('@').replace('/', "-");
    let packed = archive::tar_gz(&files, time, false)?;
    Ok((format!("{name}-{version}.tgz"), packed))
}

/// The package that people name.
pub(super) fn main_package(version: &str, time: u64) -> Result<(String, Vec<u8>), String> {
    let mut manifest = common("anyhook", version);
    let platforms = PLATFORMS
        .iter()
        .filter(|platform| !platform.node.0.is_empty());
    let optional: Map<String, Value> = platforms
        .map(|platform| (package_name(platform), json!(version)))
        .collect();
    manifest.insert("bin".to_owned(), json!({"anyhook": "bin/anyhook.js"}));
    manifest.insert("engines".to_owned(), json!({"node": ">=16"}));
    manifest.insert("optionalDependencies".to_owned(), Value::Object(optional));
    let files = vec![
        PackedFile::program(
            "bin/anyhook.js",
            read("packaging/npm/anyhook.js")?.as_bytes(),
        ),
        PackedFile::text("README.md", read("README.md")?),
        PackedFile::text("LICENSE-APACHE", read("LICENSE-APACHE")?),
        PackedFile::text("LICENSE-MIT", read("LICENSE-MIT")?),
    ];
    pack("anyhook", version, time, manifest, files)
}

pub(super) fn platform_package(release: &Release) -> Result<(String, Vec<u8>), String> {
    let (name, version) = (package_name(&release.platform), &release.version);
    let (system, processor) = release.platform.node;
    let mut manifest = common(&name, version);
    manifest.insert("os".to_owned(), json!([system]));
    manifest.insert("cpu".to_owned(), json!([processor]));
    manifest.insert("preferUnplugged".to_owned(), json!(true));
    let mut files = release.legal_files()?;
    let path = format!("bin/{}", release.platform.program_name());
    files.push(PackedFile::program(path, &release.program));
    let man = release.man.iter();
    files.extend(man.map(|(name, page)| PackedFile::text(format!("man/{name}"), page.clone())));
    pack(&name, version, release.time, manifest, files)
}
