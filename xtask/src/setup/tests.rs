//! The install command on each system.

use super::*;

fn lines(manager: Manager) -> String {
    install_lines(manager, &TOOLS.iter().collect::<Vec<_>>()).join("; ")
}

#[test]
fn each_package_is_listed_once_by_the_systems_name() {
    assert_eq!(
        lines(Manager::Apt),
        "apt-get update; apt-get install -y --no-install-recommends \
         g++ libclang-dev make nodejs npm postgresql python3 python3-venv"
    );
    assert_eq!(
        lines(Manager::Dnf),
        "dnf install -y clang-devel gcc-c++ make nodejs npm postgresql-contrib postgresql-server python3"
    );
    assert_eq!(lines(Manager::Apk), "apk add clang-dev clang-libclang g++ make nodejs npm postgresql python3");
    assert_eq!(lines(Manager::Pacman), "pacman -Sy --noconfirm --needed clang gcc make nodejs npm postgresql python");
    assert_eq!(lines(Manager::Brew), "brew install llvm make node postgresql python");
}

#[test]
fn managers_index_the_package_table() {
    for (index, (manager, _)) in MANAGERS.iter().enumerate() {
        assert_eq!(*manager as usize, index);
    }
}
