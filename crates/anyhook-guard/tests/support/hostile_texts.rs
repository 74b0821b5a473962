//! Commands that are made to break a reader: deep, endless, huge or broken.

/// Constructs that can be nested: what opens and what closes them.
pub(crate) const NESTED: &[(&str, &str)] = &[
    ("$(", ")"),
    ("(", ")"),
    ("{ ", "; }"),
    ("if ", "; then :; fi"),
    ("while ", "; do :; done"),
    ("\"$(", ")\""),
    ("${x:-", "}"),
    ("<(", ")"),
    ("a=(", ")"),
    ("f() { ", "; }"),
    ("case x in x) ", ";; esac"),
    ("for i in a; do ", "; done"),
    ("for i in ", "; do :; done"),
    ("$((", "))"),
    ("((", "))"),
    ("$[", "]"),
    ("[[ ", " ]]"),
    ("eval '", "'"),
    ("sh -c \"", "\""),
    ("{a,", "}"),
    ("! ", ""),
    ("`", "`"),
    ("select x in a; do ", "; done"),
];

/// Pieces that are repeated up to the longest command that is read.
pub(crate) const REPEATED: &[&str] = &[
    "a | ",
    "a && ",
    "a; ",
    "! ",
    "sudo ",
    "env ",
    "{a,b}",
    "{",
    "`",
    "\\`",
    "'",
    "\"",
    "<<x ",
    "$",
    "x=$x$x; ",
    "eval ",
    "{1..9}",
    "*",
    "~",
    "\\",
    "&",
    ";;",
    ")",
    "a=b ",
    ">x ",
    "f() { f | f; }; ",
    "[[ ",
    "\n",
    "cat <<E\n",
    "sh -c ",
    "xargs ",
    "x=a; (y=$x); ",
    "timeout 1 ",
    "-rf ",
    "#",
    "${",
    "$((",
    "$'\\x",
    "for i in a; do ",
    "if a; then ",
    "for i in a b; do ",
    "ln -s / a; ",
    "exec 3<a; ",
    "printf -v x a; ",
    "alias a=b; ",
    "docker run -v /:/a b ",
    "echo a > b; ",
    "find / -exec ",
    "$(cat <<E\n",
    "<(a) ",
    "python -c 'f(",
    "cat .env; ",
    "x='a",
    "$x = 'a'; ",
    "\"$(",
    "%a%",
    "^",
    "if exist a ",
    "iex \"",
    "gci | ri; ",
    "curl a | sh; ",
    "git -c a.b=c ",
    "DROP TABLE a; ",
    "a[$(",
    "declare x=(",
    "${!x}",
    "${x:=$x}",
    "for x in *; do cd $x; ",
    "xargs -I{} a{} ",
    "parallel a{} ::: b ",
    "tmux new ",
    "cp /bin/a b; ./b; ",
    "IFS=,; $x,",
    "python -m ",
    "python -c '\"a\" / \"b\" / ",
    "python -c 'path.join(a, path.join(\"a\"",
    "node -e \"require('a').",
    "sed s/a/b/e; ",
    "psql -c \"EXECUTE '",
    "find . -name a -exec b {} ; ",
    "ssh -o ProxyCommand='a b' c ",
    "ansible a -a 'b c' ",
    "cat a | crontab; ",
    "\u{fffd}",
    "\0",
];

/// Everything at least once: for each shell the texts and what they are.
pub(crate) fn hostile_texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (open, close) in NESTED {
        for (form, close) in [("nested", *close), ("not closed", "")] {
            for before in ["echo ", ""] {
                let text = format!("{before}{}rm{}", open.repeat(5000), close.repeat(5000));
                texts.push((format!("5,000 × `{open}` {form}"), text));
            }
        }
    }
    for piece in REPEATED {
        let text = piece.repeat(64_000 / piece.len());
        texts.push((format!("64 KB of `{}`", piece.escape_debug()), text));
        let text = piece.repeat((1 << 20) / piece.len());
        texts.push((format!("1 MB of `{}`", piece.escape_debug()), text));
    }
    // Invalid UTF-8, as it arrives after decoding.
    let bytes: Vec<u8> = (0..=255).cycle().take(60_000).collect();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    texts.push(("every byte".to_owned(), text));
    texts
}
