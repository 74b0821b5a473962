//! What is compiled into the program: a software bill of materials (CycloneDX) and
//! the licences of all dependencies, from cargo's own metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::run::cargo;

/// The part of `cargo metadata` that is used.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    resolve: MetadataGraph,
}

#[derive(Deserialize)]
struct MetadataPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: String,
}

#[derive(Deserialize)]
struct MetadataGraph {
    nodes: Vec<MetadataNode>,
}

#[derive(Deserialize)]
struct MetadataNode {
    id: String,
    deps: Vec<MetadataEdge>,
}

#[derive(Deserialize)]
struct MetadataEdge {
    pkg: String,
    dep_kinds: Vec<MetadataEdgeKind>,
}

#[derive(Deserialize)]
struct MetadataEdgeKind {
    kind: Option<String>,
}

/// A package that is compiled into the program.
#[derive(Debug)]
struct Dependency {
    id: String,
    name: String,
    version: String,
    license: String,
    is_own: bool,
    folder: String,
    checksum: Option<String>,
    depends_on: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Dependencies {
    all: Vec<Dependency>,
}

impl Dependencies {
    /// The packages of a build for one target.
    pub(super) fn load(triple: &str) -> Result<Self, String> {
        let output = cargo()
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(["--filter-platform", triple])
            .output()
            .map_err(|error| format!("cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let Metadata { packages, resolve } =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let checksums = lock_checksums()?;
        // Build scripts and tests are not part of the program.
        let edges: BTreeMap<String, Vec<String>> = resolve
            .nodes
            .into_iter()
            .map(|node| {
                let compiled = node.deps.into_iter().filter(|dependency| {
                    let mut kinds = dependency.dep_kinds.iter();
                    kinds.any(|kind| kind.kind.is_none())
                });
                (node.id, compiled.map(|dependency| dependency.pkg).collect())
            })
            .collect();
        let root = packages.iter().find(|package| package.name == "anyhook");
        let root = root
            .ok_or("cargo metadata does not list anyhook")?
            .id
            .clone();
        let mut queue = vec![root];
        let mut reached = BTreeSet::new();
        while let Some(id) = queue.pop() {
            if reached.insert(id.clone()) {
                queue.extend(edges.get(&id).cloned().unwrap_or_default());
            }
        }
        let packages = packages
            .into_iter()
            .filter(|package| reached.contains(&package.id));
        let mut all: Vec<Dependency> = packages
            .map(|package| Dependency {
                license: package.license.unwrap_or_default().replace('/', " OR "),
                is_own: package.source.is_none(),
                folder: package
                    .manifest_path
                    .trim_end_matches("Cargo.toml")
                    .to_owned(),
                checksum: checksums
                    .get(&format!("{} {}", package.name, package.version))
                    .cloned(),
                depends_on: edges.get(&package.id).cloned().unwrap_or_default(),
                id: package.id,
                name: package.name,
                version: package.version,
            })
            .collect();
        all.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(Self { all })
    }

    /// CycloneDX 1.5.
    pub(super) fn bill_of_materials(&self, time: &str) -> String {
        let purl = |one: &Dependency| format!("pkg:cargo/{}@{}", one.name, one.version);
        let names: BTreeMap<&str, String> = self
            .all
            .iter()
            .map(|one| (one.id.as_str(), purl(one)))
            .collect();
        let component = |one: &Dependency, kind: &str| {
            let hashes = one.checksum.iter();
            let hashes: Vec<Value> = hashes
                .map(|checksum| json!({"alg": "SHA-256", "content": checksum}))
                .collect();
            json!({"type": kind, "bom-ref": purl(one), "name": one.name,
                "version": one.version, "purl": purl(one),
                "licenses": [{"expression": one.license}], "hashes": hashes})
        };
        let is_root = |one: &&Dependency| one.name == "anyhook";
        let root = self.all.iter().find(is_root);
        let others = self.all.iter().filter(|one| !is_root(one));
        let document = json!({
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": time, "component": root.map(|one| component(one, "application"))},
            "components": others.map(|one| component(one, "library")).collect::<Vec<_>>(),
            "dependencies": self.all.iter().map(|one| {
                let mut on: Vec<&String> =
                    one.depends_on.iter().filter_map(|id| names.get(id.as_str())).collect();
                on.sort();
                json!({"ref": purl(one), "dependsOn": on})
            }).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }

    /// Every dependency with its licence, then each text once.
    pub(super) fn licenses(&self) -> Result<String, String> {
        let mut list = String::from(
            "anyhook contains the following packages, each under its own licence.\n\n",
        );
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for one in self.all.iter().filter(|one| !one.is_own) {
            let Dependency {
                name,
                version,
                license,
                ..
            } = one;
            let _ = writeln!(list, "{name} {version}: {license}");
            for text in license_texts(Path::new(&one.folder))? {
                let users = texts.entry(text).or_default();
                users.push(format!("{name} {version}"));
            }
        }
        for (text, users) in &texts {
            let line = "=".repeat(72);
            let _ = write!(
                list,
                "\n{line}\n{}\n{line}\n\n{}\n",
                users.join(", "),
                text.trim_end()
            );
        }
        Ok(list)
    }
}

fn license_texts(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut texts = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let is_license = [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "NOTICE",
            "UNLICENSE",
            "COPYRIGHT",
        ]
        .iter()
        .any(|start| name.starts_with(start));
        if is_license && path.is_file() {
            texts.push(fs::read_to_string(&path).map_err(|error| error.to_string())?);
        }
    }
    texts.sort();
    Ok(texts)
}

/// The checksums of `Cargo.lock`, by name and version.
fn lock_checksums() -> Result<BTreeMap<String, String>, String> {
    let path = crate::root().join("Cargo.lock");
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut found = BTreeMap::new();
    for package in text.split("[[package]]") {
        let field = |name: &str| {
            let start = format!("{name} = \"");
            let line = package.lines().find_map(|line| line.strip_prefix(&start))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert(format!("{name} {version}"), checksum);
        }
    }
    Ok(found)
}
