//! `anyhook run` as a program of its own, for this crate's tests of real
//! processes. Users get it as a command of `anyhook`.

fn main() {
    let args = std::env::args_os().skip(1).filter(|arg| arg != "run");
    std::process::exit(anyhook_run::entry::main(args));
}
