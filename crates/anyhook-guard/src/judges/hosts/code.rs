//! Hosts that an interpreter's code contacts.

use super::{authority_host, url_host};

/// `socket.create_connection(('host', 80))`, `Socket.new('host', …)`, `net.connect`.
pub(super) fn code_hosts(code: &str) -> Vec<String> {
    let marks = [
        "create_connection(",
        ".connect(",
        "TCPSocket.new(",
        "HTTPConnection(",
        "HTTPSConnection(",
        "createConnection(",
        "fsockopen(",
        "TCPSocket.open(",
        "gethostbyname(",
        "SMTP(",
        "SMTP_SSL(",
        "FTP(",
        "FTP_TLS(",
        "IMAP4(",
        "IMAP4_SSL(",
        "POP3(",
        "Telnet(",
        "INET->new(",
        "TcpClient(",
        "UdpClient(",
        "GetHostAddresses(",
        "GetHostEntry(",
        "ServerProxy(",
    ];
    let mut found = Vec::new();
    for mark in marks {
        for rest in code.split(mark).skip(1) {
            let quoted = rest.split(['\'', '"']).nth(1).unwrap_or_default();
            if quoted.contains('.') && !quoted.contains([' ', '/']) {
                found.push(authority_host(quoted));
            }
        }
    }
    // `http.request({host: 'example.org'})`.
    for mark in ["host:", "hostname:", "host =>", "host="] {
        for rest in code.split(mark).skip(1) {
            let quoted = rest.trim_start().strip_prefix(['\'', '"']);
            let quoted = quoted.and_then(|rest| rest.split(['\'', '"']).next());
            if let Some(host) =
                quoted.filter(|host| host.contains('.') && !host.contains([' ', '/']))
            {
                found.push(authority_host(host));
            }
        }
    }
    // awk's `/inet/tcp/0/host/port`.
    for mark in ["/inet/tcp/", "/inet/udp/", "/inet4/tcp/", "/inet6/tcp/"] {
        for rest in code.split(mark).skip(1) {
            hosts_of_inet(rest, &mut found);
        }
    }
    // URLs in code that fetches.
    let fetches = [
        "urlopen",
        "requests.",
        "fetch(",
        "http.get",
        "https.get",
        "axios",
        "urlretrieve",
        "open-uri",
        "URI.open",
        "LWP",
        "Net::HTTP",
        "curl_init",
        "file_get_contents",
        "fopen(",
        "readfile(",
        "get_headers(",
        "aiohttp",
        "httpx.",
        "XMLHttpRequest",
        "WebSocket",
        "url-retrieve",
    ];
    if fetches.iter().any(|mark| code.contains(mark)) {
        for (at, _) in code.match_indices("://") {
            let start = code
                .get(..at)
                .unwrap_or_default()
                .rfind(|letter: char| !letter.is_ascii_alphanumeric())
                .map_or(0, |at| at + 1);
            let rest = code.get(start..).unwrap_or_default();
            let end = rest.find(['\'', '"', '`', ' ', ')']).unwrap_or(rest.len());
            found.extend(url_host(rest.get(..end).unwrap_or_default()));
        }
    }
    found
}

/// What follows `/inet/tcp/`: the local port, the host, its port.
fn hosts_of_inet(rest: &str, found: &mut Vec<String>) {
    found.extend(rest.split(['/', '"']).nth(1).map(str::to_ascii_lowercase));
}
