//! `anyhook-e2e`: lists the clients, installs them, runs the checks in them.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhook_e2e::cache::latest;
use anyhook_e2e::client::Client;
use anyhook_e2e::error::{Error, Result};
use anyhook_e2e::inside::Job;
use anyhook_e2e::isolation::Isolation;
use anyhook_e2e::report::{Line, aligned, table};
use anyhook_e2e::session::Lab;
use anyhook_e2e::smoke::smoke;

const USAGE: &str = "\
usage: anyhook-e2e run [CLIENT…] [--latest] [--keep] [--plain]   run the checks, in all clients or in those named
       anyhook-e2e install [CLIENT…] [--latest]                  only install the clients into the cache
       anyhook-e2e list                                          the clients, their versions, what is installed

  --latest   the newest version of each client instead of the pinned one
  --keep     leave the folders of the sessions in place, and say where they are
  --plain    no namespaces, as on systems that do not allow them
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let mut words = args
        .iter()
        .map(String::as_str)
        .filter(|arg| !arg.starts_with("--"));
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let known = ["--latest", "--keep", "--plain"];
    let unknown = args
        .iter()
        .any(|arg| arg.starts_with("--") && !known.contains(&arg.as_str()));
    let command = words.next().unwrap_or_default();
    let names: Vec<&str> = words.collect();
    let done = match (command, names.as_slice()) {
        _ if unknown => return usage(),
        ("run", names) => lab(flag("--keep"), flag("--plain"))
            .and_then(|lab| Ok(run(&lab, &chosen(names, flag("--latest"))?))),
        ("install", names) => install(names, flag("--latest")),
        ("list", []) => list(),
        // Started by a session, inside its isolation.
        ("inside", [job]) => Job::read(Path::new(job))
            .and_then(|job| job.perform())
            .map(|()| true),
        _ => return usage(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell(&format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    tell(USAGE);
    ExitCode::from(2)
}

/// To standard error: progress and complaints.
fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// To standard output: results.
fn show(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn chosen(names: &[&str], newest: bool) -> Result<Vec<Client>> {
    let mut clients = Client::all()?;
    if let Some(name) = names
        .iter()
        .find(|name| !clients.iter().any(|client| client.slug() == **name))
    {
        return Err(Error::NoClient((*name).to_owned()));
    }
    clients.retain(|client| {
        if names.is_empty() {
            client.pin.only_named.is_none()
        } else {
            names.contains(&client.slug())
        }
    });
    if newest {
        for client in &mut clients {
            client.pin.version = latest(&client.pin.npm)?;
        }
    }
    Ok(clients)
}

fn lab(keep: bool, plain: bool) -> Result<Lab> {
    let mut lab = Lab::locate()?;
    lab.keep = keep;
    if plain {
        lab.isolation = Isolation::Plain("as asked".to_owned());
    }
    Ok(lab)
}

fn run(lab: &Lab, clients: &[Client]) -> bool {
    if let Isolation::Plain(why) = &lab.isolation {
        tell(&format!(
            "no network namespace ({why}): dead proxies instead\n"
        ));
    }
    let mut lines = Vec::new();
    for client in clients {
        tell(&format!("{} {} …\n", client.slug(), client.pin.version));
        let mut line = Line {
            client: client.slug().to_owned(),
            version: client.pin.version.clone(),
            seconds: 0.0,
            checks: Vec::new(),
            error: None,
        };
        // Installing is no part of a session's time.
        let done = lab.cache.install_client(client).and_then(|()| {
            let began = Instant::now();
            let done = smoke(lab, client);
            line.seconds = began.elapsed().as_secs_f64();
            done
        });
        match done {
            Ok((checks, outcome)) => {
                if let Some(folder) = outcome.scratch.kept() {
                    tell(&format!("  kept in {}\n", folder.display()));
                }
                line.checks = checks;
            }
            Err(error) => line.error = Some(error.to_string()),
        }
        lines.push(line);
    }
    show(&table(&lines));
    lines.iter().all(Line::is_good)
}

fn install(names: &[&str], newest: bool) -> Result<bool> {
    let lab = Lab::locate()?;
    for client in chosen(names, newest)? {
        tell(&format!("{} {} …\n", client.slug(), client.pin.version));
        lab.cache.install_client(&client)?;
    }
    Ok(true)
}

fn list() -> Result<bool> {
    let lab = Lab::locate()?;
    let mut rows = vec![
        ["client", "package", "version", "installed", "note"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for client in Client::all()? {
        let installed = if lab.cache.has(&client.package()) {
            "yes"
        } else {
            "no"
        };
        rows.push(vec![
            client.slug().to_owned(),
            client.pin.npm.clone(),
            client.pin.version.clone(),
            installed.to_owned(),
            client.pin.only_named.clone().unwrap_or_default(),
        ]);
    }
    show(&aligned(&rows));
    Ok(true)
}
