//! The bare HTTP server: Pleiad's transport, HTTP and signature check with a constant answer.
//!
//! Invariant: headers and body of the answer are the bytes that the real server sent for one item, so that the
//! difference between the two servers is the database and nothing else. It runs as a separate process, because CPU time
//! is counted by process.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use pleiad_model::env::{Env, SystemEnv};
use pleiad_wire::account::{AccountAccess, AccountKeyring, AuthTime, TokenSigner};
use pleiad_wire::http::{ConnectionState, Http, HttpLimits, Service};
use pleiad_wire::nosql::address;
use pleiad_wire::nosql::http::signature::{Credentials, authenticate};
use pleiad_wire::transport::{ConnectionLimits, Drain, Transport};

use crate::Result;
use crate::process::ChildProcess;
use crate::signed;

const HEADERS_MAX: usize = 64;

/// Starts the process; the file `answer` contains its response.
pub fn start(answer: &Path) -> Result<(ChildProcess, SocketAddr)> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let running = ChildProcess::start(Command::new(program).arg("http-ceiling").arg(answer), |_| true)?;
    let address = running.ready.parse().map_err(|e| format!("{}: {e}", running.ready))?;
    Ok((running, address))
}

/// Runs the server in this process, until it is killed.
pub fn serve(answer: &Path) -> Result {
    let bytes = fs::read(answer).map_err(|e| format!("cannot read {}: {e}", answer.display()))?;
    let service = Arc::new(ConstantResponder::new(&bytes)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start the runtime: {e}"))?;
    runtime.block_on(async {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        println!("{}", socket.local_addr().map_err(|e| e.to_string())?);
        let drain = Drain::new();
        let mut transport = Transport::new(ConnectionLimits::default(), &drain);
        transport.add_port([socket], None, Http::new(service, HttpLimits::default()));
        transport.serve().await;
        Ok(())
    })
}

struct ConstantResponder {
    access: AccountAccess,
    headers: HeaderMap,
    body: Bytes,
}

impl ConstantResponder {
    fn new(answer: &[u8]) -> Result<ConstantResponder> {
        let mut parsed = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut parsed);
        let Ok(httparse::Status::Complete(head_bytes)) = head.parse(answer) else {
            return Err("the configured answer is not an HTTP response".to_owned());
        };
        let mut headers = HeaderMap::with_capacity(32);
        for header in head.headers.iter() {
            let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|e| e.to_string())?;
            headers.insert(name, HeaderValue::from_bytes(header.value).map_err(|e| e.to_string())?);
        }
        // The HTTP library writes these two, here as in the real server.
        headers.remove(CONTENT_LENGTH);
        headers.remove(DATE);
        let keys = AccountKeyring::new(&signed::key(), None, None, None).map_err(|e| e.to_string())?;
        let tokens = Arc::new(TokenSigner::new(&[0; 32]));
        let access = AccountAccess { keys, tokens, bearer: Arc::default(), emulator_tokens: false };
        Ok(ConstantResponder { access, headers, body: Bytes::copy_from_slice(&answer[head_bytes..]) })
    }

    fn is_signed(&self, request: &Request<Incoming>) -> bool {
        let Ok(address) = address::parse(request.uri().path()) else { return false };
        let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let credentials = Credentials {
            verb: request.method().as_str(),
            signing: address.signing(),
            is_read: true,
            authorization: text(AUTHORIZATION.as_str()),
            x_ms_date: text("x-ms-date"),
            date: text(DATE.as_str()),
        };
        let now_ms = SystemEnv.now_ms();
        authenticate(&self.access, &credentials, AuthTime { now_ms, wall_ms: now_ms }).is_ok()
    }
}

impl Service for ConstantResponder {
    async fn call(&self, _: &ConnectionState, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        match self.is_signed(&request) {
            true => *response.headers_mut() = self.headers.clone(),
            false => *response.status_mut() = StatusCode::UNAUTHORIZED,
        }
        response
    }
}
