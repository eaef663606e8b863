//! Files that are written whole or not at all, and text on standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Failure;

/// A file to be written at the end, found writable at the start.
///
/// The text goes to a temporary file beside the target and is renamed over it by
/// [`Target::put`]; dropped before that, nothing is left behind. What is not a regular
/// file (a pipe, a terminal) is written directly.
#[derive(Debug)]
pub(crate) struct Target {
    asked: PathBuf,
    to: PathBuf,
    temporary: Option<PathBuf>,
}

impl Target {
    /// Checks that `path`, asked for by `flag`, can be written, and changes nothing at it.
    pub(crate) fn open(flag: &str, path: &Path) -> Result<Self, Failure> {
        Self::try_open(path).map_err(|e| {
            Failure::Usage(format!("cannot write {flag} file {}: {e}", path.display()))
        })
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        let asked = path.to_owned();
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory",
            )),
            Ok(found)
                if !found.is_file() || path.starts_with("/dev") || path.starts_with("/proc") =>
            {
                OpenOptions::new().write(true).open(path)?;
                Ok(Target {
                    to: asked.clone(),
                    asked,
                    temporary: None,
                })
            }
            found => {
                if found.is_ok() {
                    OpenOptions::new().write(true).open(path)?;
                }
                // Through a symbolic link, or the rename would replace the link.
                let to = fs::canonicalize(path).unwrap_or_else(|_| asked.clone());
                let temporary = beside(&to)?;
                File::create_new(&temporary)?;
                Ok(Target {
                    asked,
                    to,
                    temporary: Some(temporary),
                })
            }
        }
    }

    /// The path that was asked for.
    pub(crate) fn asked(&self) -> &Path {
        &self.asked
    }

    /// Where others write, before [`Target::put_written`] puts it in place.
    pub(crate) fn scratch(&self) -> &Path {
        self.temporary.as_deref().unwrap_or(&self.to)
    }

    /// Writes `text` and puts it in place.
    pub(crate) fn put(self, text: &str) -> Result<(), Failure> {
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(self.scratch())?;
            file.write_all(text.as_bytes())
        })();
        self.in_place(written)
    }

    /// Puts in place what others wrote to [`Target::scratch`]; an error if that is nothing.
    pub(crate) fn put_written(self) -> Result<(), Failure> {
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        let written = match fs::metadata(temporary) {
            Ok(found) if found.len() == 0 => {
                Err(io::Error::other("no cell of this run wrote anything"))
            }
            found => found.map(|_| ()),
        };
        self.in_place(written)
    }

    fn in_place(mut self, written: io::Result<()>) -> Result<(), Failure> {
        let done = written.and_then(|()| match self.temporary.as_ref() {
            Some(temporary) => fs::rename(temporary, &self.to),
            None => Ok(()),
        });
        if done.is_ok() {
            self.temporary = None;
        }
        done.map_err(|e| Failure::Run(format!("could not write {}: {e}", self.asked.display())))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // Nothing better can be done about a leftover at this point.
            let _ = fs::remove_file(temporary);
        }
    }
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.partial", std::process::id()));
    Ok(path.with_file_name(hidden))
}

/// Prints to standard output; a reader that went away is no error.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
