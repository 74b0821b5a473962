//! Archives whose bytes depend on their content only: sorted, one time, no owner.

use std::io::Write as _;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc, GzBuilder};

/// A file for an archive or a package.
#[derive(Debug, Clone)]
pub(super) struct PackedFile {
    /// With `/`.
    pub path: String,
    pub content: Vec<u8>,
    pub is_executable: bool,
}

impl PackedFile {
    pub(super) fn text(path: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: text.into(),
            is_executable: false,
        }
    }

    pub(super) fn program(path: impl Into<String>, content: &[u8]) -> Self {
        Self {
            is_executable: true,
            ..Self::text(path, content)
        }
    }

    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

fn sorted(files: &[PackedFile]) -> Vec<&PackedFile> {
    let mut files: Vec<&PackedFile> = files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Compresses with a header that has no name and no time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder: GzEncoder<Vec<u8>> = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_err(|error| error.to_string())
}

/// A compressed tar archive. `with_folders`: every folder has an entry of its own,
/// with `./` before its name, as in a Debian package.
pub(super) fn tar_gz(
    files: &[PackedFile],
    time: u64,
    with_folders: bool,
) -> Result<Vec<u8>, String> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut folders: Vec<String> = Vec::new();
    let header = |mode: u32, size: u64, kind: tar::EntryType| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        header
    };
    let failed = |error: std::io::Error| error.to_string();
    for file in sorted(files) {
        let mut path = file.path.clone();
        if with_folders {
            path = format!("./{path}");
            for (at, _) in path.match_indices('/') {
                let folder = path.get(..=at).unwrap_or_default().to_owned();
                if !folders.contains(&folder) {
                    let mut header = header(0o755, 0, tar::EntryType::Directory);
                    builder
                        .append_data(&mut header, &folder, std::io::empty())
                        .map_err(failed)?;
                    folders.push(folder);
                }
            }
        }
        let size = file.content.len() as u64;
        let mut header = header(file.mode(), size, tar::EntryType::Regular);
        builder
            .append_data(&mut header, &path, file.content.as_slice())
            .map_err(failed)?;
    }
    gzip(&builder.into_inner().map_err(failed)?)
}

/// The date of files in a zip archive, which cannot be older: 1980-01-01.
const ZIP_DATE: u16 = 0b0000_0000_0010_0001;

/// A zip archive with the modes of its files.
pub(super) fn zip(files: &[PackedFile]) -> Result<Vec<u8>, String> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    let files = sorted(files);
    for file in &files {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(&file.content);
        let packed = written.and_then(|()| encoder.finish());
        let packed = packed.map_err(|error| error.to_string())?;
        let mut crc = Crc::new();
        crc.update(&file.content);
        let name = file.path.as_bytes();
        let offset = size_of_part(archive.len())?;
        let mut common = Vec::new();
        // Version 2.0, names in UTF-8, deflated.
        for number in [20_u16, 0x0800, 8, 0, ZIP_DATE] {
            common.extend(number.to_le_bytes());
        }
        for number in [
            crc.sum(),
            size_of_part(packed.len())?,
            size_of_part(file.content.len())?,
            size_of_part(name.len())?,
        ] {
            common.extend(number.to_le_bytes());
        }
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(name);
        archive.extend(packed);
        // Made on Unix, so that the modes count.
        directory.extend(b"PK\x01\x02");
        directory.extend([20, 3]);
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | file.mode()) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(name);
    }
    let count = u16::try_from(files.len()).map_err(|error| error.to_string())?;
    let (size, start) = (size_of_part(directory.len())?, size_of_part(archive.len())?);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend([size.to_le_bytes(), start.to_le_bytes()].concat());
    archive.extend([0, 0]);
    Ok(archive)
}

fn size_of_part(bytes: usize) -> Result<u32, String> {
    u32::try_from(bytes).map_err(|_| "too large for a zip archive".to_owned())
}

/// The archive format of Debian packages.
pub(super) fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        let header = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, "100644"
        );
        archive.extend(header.into_bytes());
        archive.extend(content);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// Base 64 for URLs, without padding, as in the list of files of a wheel.
pub(super) fn base64_url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=chunk.len() {
            let shift = 18 - 6 * u32::try_from(digit).unwrap_or_default();
            let index = (group >> shift & 63) as usize;
            text.push(DIGITS.get(index).copied().map_or('A', char::from));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_no_padding() {
        for (text, encoded) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v")] {
            assert_eq!(base64_url(text.as_bytes()), encoded);
        }
        assert_eq!(base64_url(&[0xff, 0xfe]), "__4");
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let mut files = vec![PackedFile::text("b", "2"), PackedFile::program("a/x", b"1")];
        let first = (tar_gz(&files, 5, true).unwrap(), zip(&files).unwrap());
        files.reverse();
        let second = (tar_gz(&files, 5, true).unwrap(), zip(&files).unwrap());
        assert!(first == second);
    }
}
