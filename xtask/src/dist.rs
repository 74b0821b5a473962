//! `cargo xtask dist`: everything that people install, in `dist/`.
//!
//! Always for this machine's platform, and for each other platform whose program
//! `cargo xtask cross --release` has built. Packages of this platform are directly
//! in `dist/`, those of others in `dist/<target>/`: `pip` and `npm` refuse foreign
//! ones.
//!
//! The same program gives the same bytes: files are sorted and have the time of the
//! last commit (`SOURCE_DATE_EPOCH`).

mod archive;
mod check;
mod deb;
mod dependencies;
mod npm;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhook_util::hash::sha256;
use anyhook_util::time::rfc3339_millis;

use self::archive::PackedFile;
use self::dependencies::Dependencies;
use crate::run::{cargo, run};
use crate::suite::target;

const REPOSITORY: &str = "https://github.com/anyhook/anyhook";
const SUMMARY: &str =
    "Write an agent hook once. Run it under every coding agent. See what they did.";

/// The service of a user on macOS, for `launchctl`.
const LAUNCH_AGENT: &str = "packaging/anyhook.plist";

/// Names of the same platform in the worlds of the packages.
#[derive(Debug, Clone, Copy)]
struct Platform {
    triple: &'static str,
    /// `process.platform` and `process.arch` of Node; no package if empty.
    node: (&'static str, &'static str),
    /// The tag of wheels. A static program runs with every C library.
    wheel: &'static str,
    /// Empty: no Debian package.
    debian: &'static str,
}

const PLATFORMS: [Platform; 6] = [
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        node: ("linux", "x64"),
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        debian: "amd64",
    },
    Platform {
        triple: "x86_64-unknown-linux-musl",
        node: ("", ""),
        wheel: "",
        debian: "",
    },
    Platform {
        triple: "aarch64-unknown-linux-musl",
        node: ("linux", "arm64"),
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        debian: "arm64",
    },
    Platform {
        triple: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        wheel: "macosx_10_12_x86_64",
        debian: "",
    },
    Platform {
        triple: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        wheel: "macosx_11_0_arm64",
        debian: "",
    },
    Platform {
        triple: "x86_64-pc-windows-gnu",
        node: ("win32", "x64"),
        wheel: "win_amd64",
        debian: "",
    },
];

impl Platform {
    fn is_windows(&self) -> bool {
        self.triple.contains("windows")
    }

    fn program_name(&self) -> &'static str {
        if self.is_windows() {
            "anyhook.exe"
        } else {
            "anyhook"
        }
    }
}

/// What all packages of one platform are made of.
struct Release {
    platform: Platform,
    version: String,
    /// Seconds since 1970, of every file.
    time: u64,
    program: Vec<u8>,
    /// Manual pages, by file name.
    man: Vec<(String, Vec<u8>)>,
    /// Completions, by file name.
    completions: Vec<(&'static str, Vec<u8>)>,
    bill_of_materials: String,
    licenses: String,
}

pub(crate) fn run_dist(arguments: &[String]) -> Result<(), String> {
    let (mut checks, mut profile) = (false, "release");
    for argument in arguments {
        match argument.as_str() {
            "--check" => checks = true,
            // To try the packaging with the build that the tests use.
            "--debug" => profile = "debug",
            other => {
                return Err(format!("unknown option `{other}`; known: --check, --debug"));
            }
        }
    }
    let host = host_triple()?;
    let cargo_profile = if profile == "debug" { "dev" } else { profile };
    run(cargo().args([
        "build",
        "--locked",
        "--package",
        "anyhook",
        "--profile",
        cargo_profile,
    ]))?;
    let folder = crate::root().join("dist");
    write_all(&folder, &host, profile)?;
    if checks {
        let again = tempfile::tempdir().map_err(|error| error.to_string())?;
        write_all(again.path(), &host, profile)?;
        check::is_same(&folder, again.path())?;
        check::channels(&folder)?;
    }
    Ok(())
}

fn write_all(folder: &Path, host: &str, profile: &str) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    }
    let program = |platform: &Platform| {
        let built = if platform.triple == host {
            target().join(profile)
        } else {
            target().join("cross").join(platform.triple).join(profile)
        };
        Some(built.join(platform.program_name())).filter(|path| path.is_file())
    };
    let host_platform = PLATFORMS.iter().find(|platform| platform.triple == host);
    let host_program = host_platform
        .and_then(program)
        .ok_or_else(|| format!("there is no release build for `{host}`, or no package for it"))?;
    let documents = Documents::from_program(&host_program)?;
    let mut checksums = Vec::new();
    let mut archives = Vec::new();
    let mut missing = Vec::new();
    for platform in PLATFORMS {
        let Some(path) = program(&platform) else {
            missing.push(platform.triple);
            continue;
        };
        let release = Release::new(platform, &path, &documents)?;
        let (name, archive) = release.archive()?;
        archives.push((platform.triple, sha256(&archive)));
        checksums.push(put(folder, &name, &archive)?);
        let packages = if platform.triple == host {
            folder.to_owned()
        } else {
            folder.join(platform.triple)
        };
        for (name, content) in release.packages()? {
            let place = packages.join(&name);
            put(&packages, &name, &content)?;
            let shown = place
                .strip_prefix(folder)
                .unwrap_or(&place)
                .display()
                .to_string();
            checksums.push(format!(
                "{}  {}",
                sha256(&content),
                shown.replace('\\', "/")
            ));
        }
        println!("dist: {}", platform.triple);
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        println!("dist: `cargo xtask cross --release` has built nothing for {missing}");
    }
    let (name, content) = npm::main_package(&documents.version, documents.time)?;
    checksums.push(put(folder, &name, &content)?);
    for (template, path) in [
        ("packaging/anyhook.rb", "homebrew/anyhook.rb"),
        (
            "packaging/setup-anyhook/action.yml",
            "setup-anyhook/action.yml",
        ),
    ] {
        let text = fill(&read(template)?, &documents.version, &archives);
        put(folder, path, text.as_bytes())?;
    }
    checksums.sort_by(|a, b| a.split(' ').next_back().cmp(&b.split(' ').next_back()));
    put(
        folder,
        "SHA256SUMS",
        (checksums.join("\n") + "\n").as_bytes(),
    )?;
    Ok(())
}

/// Fills a template that is published with the release.
fn fill(template: &str, version: &str, archives: &[(&str, String)]) -> String {
    let mut text = template
        .replace("@VERSION@", version)
        .replace("@REPOSITORY@", REPOSITORY);
    for (triple, checksum) in archives {
        text = text.replace(&format!("@SHA256:{triple}@"), checksum);
    }
    text
}

/// What does not depend on the platform. The program itself writes it.
struct Documents {
    version: String,
    time: u64,
    man: Vec<(String, Vec<u8>)>,
    completions: Vec<(&'static str, Vec<u8>)>,
}

impl Documents {
    fn from_program(program: &Path) -> Result<Self, String> {
        let output = |arguments: &[&str]| output_of(Command::new(program).args(arguments));
        let mut man = vec![("anyhook.1".to_owned(), output(&["man"])?)];
        let help = String::from_utf8_lossy(&output(&["--help"])?).into_owned();
        for command in commands_in_help(&help) {
            man.push((format!("anyhook-{command}.1"), output(&["man", &command])?));
        }
        if man.len() < 10 {
            return Err("could not read the list of commands in `anyhook --help`".to_owned());
        }
        let completions = [
            ("anyhook.bash", "bash"),
            ("_anyhook", "zsh"),
            ("anyhook.fish", "fish"),
            ("_anyhook.ps1", "powershell"),
        ];
        let completions = completions
            .into_iter()
            .map(|(name, shell)| Ok((name, output(&["completions", shell])?)));
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: source_time()?,
            man,
            completions: completions.collect::<Result<_, String>>()?,
        })
    }
}

/// The commands that a help text lists, one per line below its heading.
fn commands_in_help(help: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            is_list = line.ends_with(':') && line != "Options:" && line != "Examples:";
        } else if let (true, Some(name)) = (is_list, line.strip_prefix("  ")) {
            let name = name.split(' ').next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with('-') && name != "help" {
                commands.push(name.to_owned());
            }
        }
    }
    commands
}

impl Release {
    fn new(platform: Platform, program: &Path, documents: &Documents) -> Result<Self, String> {
        let dependencies = Dependencies::load(platform.triple)?;
        let millis = i64::try_from(documents.time).unwrap_or_default() * 1000;
        let time = rfc3339_millis(millis).unwrap_or_default();
        Ok(Self {
            platform,
            version: documents.version.clone(),
            time: documents.time,
            program: fs::read(program)
                .map_err(|error| format!("{}: {error}", program.display()))?,
            man: documents.man.clone(),
            completions: documents.completions.clone(),
            bill_of_materials: dependencies.bill_of_materials(&time),
            licenses: dependencies.licenses()?,
        })
    }

    /// Whether a Linux program needs a C library of the system.
    fn is_dynamic(&self) -> bool {
        const LOADER: &[u8] = b"/ld-linux";
        let mut parts = self.program.windows(LOADER.len());
        parts.any(|part| part == LOADER)
    }

    /// Licences, and what is compiled in: part of every package.
    fn legal_files(&self) -> Result<Vec<PackedFile>, String> {
        Ok(vec![
            PackedFile::text("LICENSE-APACHE", read("LICENSE-APACHE")?),
            PackedFile::text("LICENSE-MIT", read("LICENSE-MIT")?),
            PackedFile::text("THIRD-PARTY-LICENSES.txt", self.licenses.clone()),
            PackedFile::text("sbom.cdx.json", self.bill_of_materials.clone()),
        ])
    }

    /// The archive with everything, named as `cargo binstall` expects it.
    fn archive(&self) -> Result<(String, Vec<u8>), String> {
        let name = format!("anyhook-{}-{}", self.version, self.platform.triple);
        let mut files = self.legal_files()?;
        files.push(PackedFile::program(
            self.platform.program_name(),
            &self.program,
        ));
        for document in ["README.md", "CHANGELOG.md"] {
            files.push(PackedFile::text(document, read(document)?));
        }
        if self.platform.triple.contains("apple") {
            files.push(PackedFile::text("anyhook.plist", read(LAUNCH_AGENT)?));
        }
        let man = self.man.iter();
        files.extend(man.map(|(name, page)| PackedFile::text(format!("man/{name}"), page.clone())));
        let scripts = self.completions.iter();
        files.extend(
            scripts
                .map(|(name, text)| PackedFile::text(format!("completions/{name}"), text.clone())),
        );
        for file in &mut files {
            file.path = format!("{name}/{}", file.path);
        }
        if self.platform.is_windows() {
            Ok((format!("{name}.zip"), archive::zip(&files)?))
        } else {
            Ok((
                format!("{name}.tar.gz"),
                archive::tar_gz(&files, self.time, false)?,
            ))
        }
    }

    fn packages(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut packages = Vec::new();
        if !self.platform.wheel.is_empty() {
            packages.push(wheel::package(self)?);
        }
        if !self.platform.node.0.is_empty() {
            packages.push(npm::platform_package(self)?);
        }
        if !self.platform.debian.is_empty() {
            packages.push(deb::package(self)?);
        }
        Ok(packages)
    }
}

/// A text of the repository.
fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(crate::root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// Writes a file; its line of the checksums.
fn put(folder: &Path, name: &str, content: &[u8]) -> Result<String, String> {
    let path: PathBuf = folder.join(name);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
    fs::write(&path, content).map_err(failed)?;
    Ok(format!("{}  {name}", sha256(content)))
}

fn output_of(command: &mut Command) -> Result<Vec<u8>, String> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown}: {}\n{stderr}", output.status))
}

fn host_triple() -> Result<String, String> {
    let output = output_of(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8_lossy(&output).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc names no host".to_owned())
}

/// The time of all files: `SOURCE_DATE_EPOCH`, or that of the last commit.
fn source_time() -> Result<u64, String> {
    let text = if let Ok(set) = std::env::var("SOURCE_DATE_EPOCH") {
        set
    } else {
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=%ct"])
            .current_dir(crate::root());
        String::from_utf8_lossy(&output_of(&mut git)?).into_owned()
    };
    text.trim()
        .parse()
        .map_err(|_| format!("`{text}` is not a time in seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// launchd runs the words of `ProgramArguments` in an environment with little
    /// more than HOME; here a shell of this system does.
    #[cfg(unix)]
    #[test]
    fn the_launch_agent_finds_the_program_that_install_keeps() {
        use std::os::unix::fs::PermissionsExt;
        let text = read(LAUNCH_AGENT).unwrap();
        let (_, list) = text.split_once("<key>ProgramArguments</key>").unwrap();
        let (list, _) = list.split_once("</array>").unwrap();
        let words: Vec<&str> = list
            .split("<string>")
            .skip(1)
            .map(|word| word.split("</string>").next().unwrap())
            .collect();
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join(".local/share/anyhook/bin/anyhook");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "#!/bin/sh\necho \"$0 $*\"\n").unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env_clear();
        command
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin");
        let output = output_of(&mut command).unwrap();
        let expected = format!("{} serve\n", program.display());
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }

    #[test]
    fn the_host_of_the_action_and_the_formula_are_packaged() {
        for template in ["packaging/anyhook.rb", "packaging/setup-anyhook/action.yml"] {
            let text = read(template).unwrap();
            for platform in PLATFORMS
                .iter()
                .filter(|platform| !platform.node.0.is_empty())
            {
                let is_named = text.contains(platform.triple);
                let is_unfit = platform.is_windows() && template.contains("anyhook.rb");
                assert!(is_named || is_unfit, "{template}: {}", platform.triple);
            }
        }
    }
}
