//! The operating system, as a value: what differs between systems without needing
//! their functions is written once for all of them and tested on any.

/// The systems that hooks and config files distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Also any other Unix.
    Linux,
    MacOs,
    Windows,
}

impl OperatingSystem {
    /// The one that this program was built for.
    pub const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };

    /// The field of a handler with the command for this system.
    pub fn command_field(self) -> &'static str {
        match self {
            Self::Linux => "platform.linux",
            Self::MacOs => "platform.osx",
            Self::Windows => "platform.windows",
        }
    }

    /// The program that opens a link in the user's browser, with its arguments.
    pub fn link_opener(self) -> &'static [&'static str] {
        match self {
            Self::Linux => &["xdg-open"],
            Self::MacOs => &["open"],
            Self::Windows => &["rundll32", "url.dll,FileProtocolHandler"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_its_own_words() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let words = [Linux, MacOs, Windows].map(|system| {
            let opener = system.link_opener().first().copied();
            (system.command_field(), opener.unwrap_or_default())
        });
        let expected = [
            ("platform.linux", "xdg-open"),
            ("platform.osx", "open"),
            ("platform.windows", "rundll32"),
        ];
        assert_eq!(words, expected);
        assert_eq!(cfg!(windows), OperatingSystem::CURRENT == Windows);
    }
}
