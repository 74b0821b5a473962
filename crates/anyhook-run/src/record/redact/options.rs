//! Secrets on command lines: `--password …`, `-u name:…`, `redis-cli -a …`.

use super::SecretSpan;
use super::literals::{is_mixed, is_secret_text, is_worth_hiding};
use super::names::{NameClass, class_of_name};
use super::scan::{Alphabet, run_length};
use super::values::{Separator, value_at};

/// An option of some programs that takes a password.
pub(super) struct OptionRule {
    pub programs: &'static [&'static str],
    pub option: &'static str,
    pub form: OptionForm,
}

/// How the password is written after its option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionForm {
    /// `-a X`.
    Word,
    /// `-pX`.
    Glued,
    /// `-p X` or `-pX`.
    Either,
    /// `-U name%X`, `-u name,X`.
    AfterName(u8),
    /// `-passin pass:X`.
    AfterPass,
}

const fn option_rule(
    programs: &'static [&'static str],
    option: &'static str,
    form: OptionForm,
) -> OptionRule {
    OptionRule {
        programs,
        option,
        form,
    }
}

#[rustfmt::skip]
pub(super) const OPTION_RULES: &[OptionRule] = &[
    option_rule(&["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "sshpass", "login"], "-p", OptionForm::Either),
    option_rule(&["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "cqlsh", "cypher-shell", "rabbitmqadmin", "az", "evil-winrm"], "-p", OptionForm::Word),
    option_rule(&["7z", "7za", "7zr", "7zz", "rar", "unrar"], "-p", OptionForm::Glued),
    option_rule(&["redis-cli", "valkey-cli"], "-a", OptionForm::Word),
    option_rule(&["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd", "ldapcompare"], "-w", OptionForm::Word),
    option_rule(&["zip", "unzip", "sqlcmd", "bcp", "osql", "mosquitto_pub", "mosquitto_sub", "ssh-keygen"], "-P", OptionForm::Word),
    option_rule(&["ssh-keygen"], "-N", OptionForm::Word),
    option_rule(&["smbclient", "rpcclient", "smbget", "smbcacls", "net"], "-U", OptionForm::AfterName(b'%')),
    option_rule(&["lftp"], "-u", OptionForm::AfterName(b',')),
    option_rule(&["openssl"], "-k", OptionForm::Word),
    option_rule(&["openssl"], "-passin", OptionForm::AfterPass),
    option_rule(&["openssl"], "-passout", OptionForm::AfterPass),
    option_rule(&["openssl"], "-pass", OptionForm::AfterPass),
];

/// The longest part of a command line before an option that is looked at.
const MAX_COMMAND_BYTES: usize = 256;

/// The secret after the option that begins at `at`.
pub(super) fn option(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let dashes = run_length(bytes, at, |byte| byte == b'-');
    let letters = Alphabet::URL_SAFE.run(bytes, at + dashes).min(64);
    let end = at + dashes + letters;
    let name = bytes.get(at + dashes..end)?;
    match (dashes, name) {
        (2, b"user" | b"proxy-user" | b"creds" | b"src-creds" | b"dest-creds") => {
            return name_and_password(bytes, end + 1, b':');
        }
        (1, [b'u' | b'U', ..]) if is_separate(bytes, at) => {
            let gap = run_length(bytes, at + 2, |byte| byte == b' ');
            let by_name = name_and_password(bytes, at + 2 + gap, b':');
            return by_name.or_else(|| program_option(bytes, at));
        }
        (1, _) if !is_separate(bytes, at) => return None,
        (1 | 2, _) => {}
        _ => return None,
    }
    let is_argument = bytes.get(end) == Some(&b' ') && bytes.get(end + 1) != Some(&b'-');
    if is_argument
        && (dashes == 2 || letters >= 4)
        && let Some(class) = class_of_name(name)
    {
        let class = match class {
            NameClass::Query(kind) => NameClass::Maybe(kind),
            class => class,
        };
        return value_at(bytes, end + 1, Separator::Argument, class);
    }
    (dashes == 1).then(|| program_option(bytes, at)).flatten()
}

fn is_separate(bytes: &[u8], at: usize) -> bool {
    at == 0 || matches!(bytes.get(at - 1), Some(b' ' | b'\t' | b'"' | b'\''))
}

/// An option that only some programs have.
fn program_option(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = bytes.get(at..)?;
    let mut rules = OPTION_RULES
        .iter()
        .filter(|rule| rest.starts_with(rule.option.as_bytes()))
        .peekable();
    let shortest = rules.peek()?.option.len();
    let gap = run_length(bytes, at + shortest, |byte| byte == b' ');
    if !is_separate(bytes, at) || bytes.get(at + shortest + gap) == Some(&b'-') {
        return None;
    }
    let line = bytes.get(at.saturating_sub(MAX_COMMAND_BYTES)..at)?;
    let command = line
        .rsplit(|byte| matches!(byte, b';' | b'|' | b'&' | b'\n'))
        .next()?;
    rules.find_map(|rule| {
        if !words(command).any(|word| is_program(word, rule)) {
            return None;
        }
        let end = at + rule.option.len();
        let gap = run_length(bytes, end, |byte| byte == b' ');
        let from = end + gap;
        if bytes.get(from) == Some(&b'-') {
            return None;
        }
        let is_allowed = match rule.form {
            OptionForm::Glued => gap == 0,
            OptionForm::Either => true,
            _ => gap > 0,
        };
        let password = NameClass::Secret("password");
        match rule.form {
            _ if !is_allowed => None,
            OptionForm::AfterName(mark) => name_and_password(bytes, from, mark),
            OptionForm::AfterPass => {
                let from = from + run_length(bytes, from, |byte| matches!(byte, b'"' | b'\''));
                let is_text = bytes.get(from..)?.starts_with(b"pass:");
                is_text
                    .then(|| value_at(bytes, from + 5, Separator::Tight, password))
                    .flatten()
            }
            _ => value_at(bytes, from, Separator::Tight, password),
        }
    })
}

fn is_program(word: &[u8], rule: &OptionRule) -> bool {
    rule.programs
        .iter()
        .any(|program| program.as_bytes() == word)
}

/// The words of a command, programs without their folder.
fn words(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_end =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'(' | b'`');
    let words = command.split(is_end);
    words.map(|word| word.rsplit(|byte| *byte == b'/').next().unwrap_or(word))
}

/// Whether the argument after `option` is a secret, for a command that is a list.
pub(super) fn argument_kind<'a>(
    mut before: impl Iterator<Item = &'a str>,
    option: &str,
) -> Option<&'static str> {
    let name = option.strip_prefix('-')?;
    if let Some(NameClass::Secret(kind)) = class_of_name(name.as_bytes())
        && name.len() >= 4
        && !name.contains('=')
    {
        return Some(kind);
    }
    let mut rules = OPTION_RULES.iter().filter(|rule| {
        rule.option == option && matches!(rule.form, OptionForm::Word | OptionForm::Either)
    });
    let rule = rules.next()?;
    let is_program_word = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word).as_bytes();
        is_program(name, rule) || rules.clone().any(|rule| is_program(name, rule))
    };
    before.any(is_program_word).then_some("password")
}

/// The password of `name:password`; two numbers are a user and a group.
fn name_and_password(bytes: &[u8], at: usize, mark: u8) -> Option<SecretSpan> {
    let open = run_length(bytes, at, |byte| matches!(byte, b'"' | b'\'' | b'\\'));
    let at = at + open;
    let name = run_length(bytes, at, |byte| {
        Alphabet::TOKEN.contains(byte)
            || (matches!(byte, b'@' | b'+' | b'%' | b'/' | b'\\') && byte != mark)
    });
    if name == 0 || bytes.get(at + name) != Some(&mark) {
        return None;
    }
    let from = at + name + 1;
    let length = run_length(bytes, from, |byte| {
        (byte.is_ascii_graphic() || !byte.is_ascii())
            && !matches!(byte, b'"' | b'\'' | b'\\' | b';' | b'|')
            && (byte != b'&' || open > 0)
    });
    let secret = bytes.get(from..from + length)?;
    let is_number = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let is_owner = is_number(bytes.get(at..at + name)?) && is_number(secret);
    let is_address = secret.starts_with(b"//");
    // `-u user:group` in words, as `chown` and `docker run` take it, is no secret.
    let is_group = secret.iter().all(u8::is_ascii_lowercase) && secret.len() < 6;
    let is_secret = is_mixed(secret, 3) || is_secret_text(secret);
    (!is_owner && !is_address && !is_group && is_worth_hiding(secret) && is_secret)
        .then_some(("password", from..from + length))
}
