//! `pleiad trust`: makes clients trust the generated certificate authority.
//!
//! Guarantees: the printed commands are the ones that `--install` runs, with the real path in them. Only the operating
//! system's trust store is ever changed, and only with `--install`; for language runtimes with a trust store of their
//! own, the instructions are printed.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::Command;

use pleiad_model::{Error, Result};

/// The systems with a known way to add a certificate to the trust store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Platform {
    /// Alpine too: same directory, same command.
    Debian,
    Fedora,
    Arch,
    MacOs,
    Windows,
}

impl Platform {
    const ALL: [Platform; 5] = [Platform::Debian, Platform::Fedora, Platform::Arch, Platform::MacOs, Platform::Windows];

    fn title(self) -> &'static str {
        match self {
            Platform::Debian => "Debian, Ubuntu, Alpine (needs the package ca-certificates)",
            Platform::Fedora => "Fedora, RHEL, Amazon Linux",
            Platform::Arch => "Arch",
            Platform::MacOs => "macOS",
            Platform::Windows => "Windows",
        }
    }

    fn needs_root(self) -> bool {
        self != Platform::Windows
    }

    /// The commands, each split into program and arguments.
    fn commands(self, ca: &str) -> Vec<Vec<&str>> {
        const DEBIAN: &str = "/usr/local/share/ca-certificates/pleiad.crt";
        const FEDORA: &str = "/etc/pki/ca-trust/source/anchors/pleiad.pem";
        const KEYCHAIN: &str = "/Library/Keychains/System.keychain";
        match self {
            Platform::Debian => vec![vec!["cp", ca, DEBIAN], vec!["update-ca-certificates"]],
            Platform::Fedora => vec![vec!["cp", ca, FEDORA], vec!["update-ca-trust"]],
            Platform::Arch => vec![vec!["trust", "anchor", "--store", ca]],
            Platform::MacOs => vec![vec!["security", "add-trusted-cert", "-d", "-r", "trustRoot", "-k", KEYCHAIN, ca]],
            Platform::Windows => vec![vec!["certutil", "-user", "-addstore", "Root", ca]],
        }
    }

    /// Detected from the files that exist; `root` is `/` except in tests.
    fn detect(root: &Path) -> Option<Platform> {
        let has = |path: &str| root.join(path).exists();
        match std::env::consts::OS {
            "macos" => Some(Platform::MacOs),
            "windows" => Some(Platform::Windows),
            _ if has("usr/sbin/update-ca-certificates") || has("usr/bin/update-ca-certificates") => {
                Some(Platform::Debian)
            }
            _ if has("etc/pki/ca-trust/source/anchors") => Some(Platform::Fedora),
            _ if has("etc/ca-certificates/trust-source") => Some(Platform::Arch),
            _ => None,
        }
    }
}

/// The instructions for every platform and runtime, this system's first.
pub fn explain(ca: &Path) -> String {
    let ca = ca.display().to_string();
    let current = Platform::detect(Path::new("/"));
    let mut text = format!("The certificate authority of this installation is\n  {ca}\n\n{HTTP_NOTE}");
    text.push_str("\nOperating system (curl, .NET, Go and most others)\n");
    for platform in current.into_iter().chain(Platform::ALL.into_iter().filter(|other| Some(*other) != current)) {
        let mark = if Some(platform) == current { "; this machine: `pleiad trust --install`" } else { "" };
        text.push_str(&format!("  {}{mark}\n", platform.title()));
        for command in platform.commands(&ca) {
            text.push_str(&format!("    {}\n", shell(&with_sudo(platform, command))));
        }
    }
    text + &runtimes(&ca)
}

const HTTP_NOTE: &str = "\
Clients that accept http:// need none of this: pleiad dev answers HTTP on the same port.
";

fn runtimes(ca: &str) -> String {
    let (path, ca) = (ca, quote(ca));
    format!(
        "\n\
         Java (its runtime has a trust store of its own)\n    \
         keytool -importcert -noprompt -cacerts -storepass changeit -alias pleiad -file {ca}\n\
         Node.js\n    \
         export NODE_EXTRA_CA_CERTS={ca}\n\
         Python (azure-cosmos does not verify the names localhost and 127.0.0.1)\n    \
         export REQUESTS_CA_BUNDLE={ca}\n    \
         or CosmosClient(url, key, connection_verify=\"{path}\")\n\
         Go, when the operating system does not trust it\n    \
         export SSL_CERT_FILE={ca}\n\
         Rust with rustls and native roots, OpenSSL\n    \
         export SSL_CERT_FILE={ca}\n\n\
         REQUESTS_CA_BUNDLE and SSL_CERT_FILE replace the usual authorities: set them for tests, not for a whole machine.\n"
    )
}

/// Runs the commands for this system.
pub fn install(ca: &Path) -> Result<()> {
    let platform = Platform::detect(Path::new("/")).ok_or_else(|| {
        Error::unsupported(
            "`pleiad trust --install` on this operating system (run `pleiad trust` for what can be done by hand)",
        )
    })?;
    let ca = ca.display().to_string();
    for command in platform.commands(&ca) {
        let command = if is_root() { command } else { with_sudo(platform, command) };
        eprintln!("{}", shell(&command));
        run(&command)?;
    }
    Ok(())
}

fn run(command: &[&str]) -> Result<()> {
    let Some((program, args)) = command.split_first() else { return Ok(()) };
    match Command::new(program).args(args).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::unavailable(format!("`{}` ended with {status}.", shell(command)))),
        Err(error) => Err(Error::unavailable(format!("cannot run `{program}`: {error}"))),
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs only the commands with `sudo`, not `pleiad` itself: as root it would look for the certificate in root's home
/// directory.
fn with_sudo(platform: Platform, command: Vec<&str>) -> Vec<&str> {
    if platform.needs_root() { [vec!["sudo"], command].concat() } else { command }
}

fn shell(command: &[&str]) -> String {
    command.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./\\:=,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
