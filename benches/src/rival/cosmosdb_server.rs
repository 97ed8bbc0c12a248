//! `@vercel/cosmosdb-server`: an emulator in JavaScript. It stores everything in memory and checks no signature.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Result;
use crate::process::ChildProcess;

/// Its own command line closes the connection after every response; this program enables keep-alive.
const PROGRAM: &str = "const {createHttpServer} = require('@vercel/cosmosdb-server');
const server = createHttpServer({keepAlive: true}).listen(0, '127.0.0.1', () => console.log(server.address().port));";

/// `modules` is the directory that contains its `node_modules`.
pub fn start(modules: &Path) -> Result<(ChildProcess, SocketAddr)> {
    let mut node = Command::new("node");
    node.args(["-e", PROGRAM])
        .current_dir(modules)
        .env("NODE_PATH", modules.join("node_modules"))
        .stderr(Stdio::null());
    let process = ChildProcess::start(&mut node, |line| line.parse::<u16>().is_ok())?;
    let port = process.ready.parse::<u16>().map_err(|e| format!("{}: {e}", process.ready))?;
    Ok((process, SocketAddr::from(([127, 0, 0, 1], port))))
}
