//! Port plan: the ports that the server opens.
//!
//! The main port is always opened. A protocol with a port of its own has a setting `<name>-port`, which is not set by
//! default. If it is set, the server does not start without the port. Otherwise `pleiad dev` opens the emulator's port,
//! or does without if another program uses it, and `pleiad serve` opens none.

use super::table::RunMode;

/// A port to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// The name of the port's protocol. The ready line and the banner show the protocol's endpoint under this name.
    pub name: &'static str,
    /// The setting that changes the number.
    pub setting: &'static str,
    /// 0 is any free port.
    pub number: u16,
    /// Whether the server must not start without this port.
    pub required: bool,
}

/// The setting of a protocol's own port.
#[derive(Clone, Copy, Debug)]
pub struct PortSetting {
    pub name: &'static str,
    pub setting: &'static str,
    /// The number of the emulator.
    pub emulator: u16,
    /// The number that a flag, a variable or the file gives.
    pub given: Option<u16>,
}

impl PortPlan {
    pub const MAIN: &str = "main";

    fn main(number: u16) -> PortPlan {
        PortPlan { name: PortPlan::MAIN, setting: "port", number, required: true }
    }
}

/// The ports to open, the main port first. If it is any free port, so are those that are opened by default: a second
/// server on the machine must not collide with the first.
pub fn plan(mode: RunMode, main: u16, further: &[PortSetting]) -> Vec<PortPlan> {
    let planned = |&PortSetting { name, setting, emulator, given }: &PortSetting| match (given, mode) {
        (Some(number), _) => Some(PortPlan { name, setting, number, required: true }),
        (None, RunMode::Dev) => {
            let number = if main == 0 { 0 } else { emulator };
            Some(PortPlan { name, setting, number, required: false })
        }
        (None, RunMode::Serve) => None,
    };
    [PortPlan::main(main)].into_iter().chain(further.iter().filter_map(planned)).collect()
}
