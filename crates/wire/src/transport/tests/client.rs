//! Clients for tests, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::transport::tls_config;

/// Long enough to elapse only if the test fails.
pub(crate) const FOREVER: Duration = Duration::from_secs(10);
pub(crate) const A_WHILE: Duration = Duration::from_millis(150);

/// A self-signed certificate and the clients that trust it.
pub(crate) struct TestTls {
    pub(crate) config: rustls::ServerConfig,
    certificate: CertificateDer<'static>,
}

impl TestTls {
    pub(crate) fn new() -> TestTls {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let config = tls_config(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
        TestTls { config, certificate: made.cert.der().clone() }
    }

    pub(crate) async fn connect(&self, address: SocketAddr, alpn: &[&[u8]]) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let (name, socket) = (ServerName::try_from("localhost").unwrap(), TcpStream::connect(address).await.unwrap());
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()
    }
}

pub(crate) async fn bind() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Sends raw bytes and returns everything up to the close by the server.
pub(crate) async fn send(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    until_closed(&mut stream).await
}

/// Everything up to the end of the stream; a reset is an end, too.
pub(crate) async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    let _ = timeout(FOREVER, stream.read_to_end(&mut all)).await.expect("the server should have closed the connection");
    String::from_utf8_lossy(&all).into_owned()
}

/// One response with a known end; leaves the connection open.
pub(crate) async fn until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut all = Vec::new();
    while !all.ends_with(end.as_bytes()) {
        let byte = timeout(FOREVER, stream.read_u8()).await.expect("the server should have answered");
        all.push(byte.unwrap_or_else(|_| panic!("closed after {:?}", String::from_utf8_lossy(&all))));
    }
    String::from_utf8(all).unwrap()
}

/// Requests `/two` with HTTP/2.
pub(crate) async fn get_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> (Version, String) {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://localhost/two").body(Full::<Bytes>::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let version = response.version();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (version, String::from_utf8(body.to_vec()).unwrap())
}
