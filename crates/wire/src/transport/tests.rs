//! A protocol with a port of its own next to HTTP, under all limits of the transport.

pub(crate) mod client;

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Notify;

use super::handshake::begins_tls;
use super::stream::Prefixed;
use super::*;
use crate::http::tests::TestService;
use crate::http::{Http, HttpLimits};
use client::{A_WHILE, FOREVER, TestTls, bind, get_http2, send, until, until_closed};

/// Returns every line. `slow` waits to be released; `panic` panics.
#[derive(Clone, Default)]
struct Echo {
    entered: Arc<Notify>,
    release: Arc<Notify>,
}

impl Protocol for Echo {
    type Variant = ();

    fn recognize(&self, _: &Opening<'_>) -> Recognition<()> {
        Recognition::Yes(())
    }

    async fn serve(&self, (): (), connection: Connection) -> Result<(), ConnectionError> {
        let Connection { stream, state, mut draining, .. } = connection;
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = String::new();
            tokio::select! {
                read = stream.read_line(&mut line) => if read? == 0 { return Ok(()) },
                () = draining.begun() => return Ok(()),
            }
            let _in_flight = state.activity.begin();
            let _memory = state.memory.reserve(line.len()).await;
            match line.trim_end() {
                "panic" => panic!("requested by the test"),
                "slow" => {
                    self.entered.notify_one();
                    self.release.notified().await;
                }
                _ => {}
            }
            stream.write_all(line.as_bytes()).await?;
            stream.flush().await?;
        }
    }
}

/// Connections that begin with `ECHO`.
#[derive(Default)]
struct EchoByFirstBytes(Echo);

impl Protocol for EchoByFirstBytes {
    type Variant = ();

    fn recognize(&self, opening: &Opening<'_>) -> Recognition<()> {
        match opening.first_bytes {
            bytes if bytes.starts_with(b"ECHO") => Recognition::Yes(()),
            bytes if b"ECHO".starts_with(bytes) => Recognition::MoreBytes,
            _ => Recognition::No,
        }
    }

    async fn serve(&self, variant: (), connection: Connection) -> Result<(), ConnectionError> {
        self.0.serve(variant, connection).await
    }
}

/// HTTP and `Echo` on ports of their own, and a port that both share.
struct TestServer {
    http: SocketAddr,
    echo: SocketAddr,
    shared: SocketAddr,
    echo_protocol: Echo,
    drain: Drain,
    tls: TestTls,
}

async fn open(limits: ConnectionLimits) -> TestServer {
    let (tls, drain, echo_protocol) = (TestTls::new(), Drain::new(), Echo::default());
    let [(http_socket, http), (echo_socket, echo), (shared_socket, shared)] =
        [bind().await, bind().await, bind().await];
    let http_protocol = || Http::new(Arc::new(TestService::default()), HttpLimits::default());
    let mut transport = Transport::new(limits, &drain);
    transport.add_port([http_socket], Some(&tls.config), http_protocol());
    transport.add_port([echo_socket], Some(&tls.config), echo_protocol.clone());
    transport.add_port([shared_socket], Some(&tls.config), (EchoByFirstBytes::default(), http_protocol()));
    tokio::spawn(transport.serve());
    TestServer { http, echo, shared, echo_protocol, drain, tls }
}

trait ClientStreamOfTest: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ClientStreamOfTest for T {}

impl TestServer {
    async fn connect(&self, address: SocketAddr, secure: bool) -> Box<dyn ClientStreamOfTest> {
        match secure {
            true => Box::new(self.tls.connect(address, &[]).await),
            false => Box::new(TcpStream::connect(address).await.unwrap()),
        }
    }

    async fn connect_to_echo(&self, secure: bool) -> Box<dyn ClientStreamOfTest> {
        self.connect(self.echo, secure).await
    }

    async fn still_serves(&self) {
        for secure in [false, true] {
            exchange(&mut self.connect_to_echo(secure).await, "still here\n").await;
        }
        let answer = send(self.http, b"GET /ok HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.ends_with("HTTP/1.1 secure=false /ok"), "{answer}");
    }
}

async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), line: &str) {
    stream.write_all(line.as_bytes()).await.unwrap();
    assert_eq!(until(stream, "\n").await, line);
}

/// The response comes after `release`, and not before.
async fn exchange_after(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), line: &str, release: impl FnOnce()) {
    tokio::time::sleep(A_WHILE / 5).await;
    stream.write_all(line.as_bytes()).await.unwrap();
    timeout(A_WHILE, stream.read_u8()).await.expect_err("the request should wait");
    release();
    assert_eq!(until(stream, "\n").await, line);
}

#[tokio::test]
async fn each_port_speaks_its_protocol_over_plain_and_tls() {
    let server = open(ConnectionLimits::default()).await;
    for secure in [false, true] {
        let mut echo = server.connect_to_echo(secure).await;
        exchange(&mut echo, "one\n").await;
        exchange(&mut echo, "two\n").await;
        let mut http = server.connect(server.http, secure).await;
        http.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        until(&mut http, &format!("HTTP/1.1 secure={secure} /x")).await;
    }
}

#[tokio::test]
async fn protocols_that_share_a_port_are_told_apart() {
    let server = open(ConnectionLimits::default()).await;
    for secure in [false, true] {
        let mut echo = server.connect(server.shared, secure).await;
        echo.write_all(b"EC").await.unwrap();
        tokio::time::sleep(A_WHILE / 5).await;
        echo.write_all(b"HO\n").await.unwrap();
        until(&mut echo, "ECHO\n").await;
        let mut http = server.connect(server.shared, secure).await;
        http.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        until(&mut http, &format!("HTTP/1.1 secure={secure} /x")).await;
        get_http2(server.connect(server.shared, secure).await).await;
    }
}

/// Without a byte from the client: `EchoByFirstBytes` would still wait for some.
#[tokio::test]
async fn a_negotiated_protocol_needs_no_first_bytes() {
    let server = open(ConnectionLimits { slow_client_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut http1 = server.tls.connect(server.shared, &[b"http/1.1"]).await;
    tokio::time::sleep(A_WHILE * 2).await;
    http1.write_all(b"GET /late HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut http1, "HTTP/1.1 secure=true /late").await;
    let http2 = server.tls.connect(server.shared, &[b"h2", b"http/1.1"]).await;
    assert_eq!(get_http2(http2).await.1, "HTTP/2.0 secure=true /two");
}

#[tokio::test]
async fn all_ports_share_the_limit_of_connections() {
    let server = open(ConnectionLimits { connections_max: 1, ..ConnectionLimits::default() }).await;
    let mut http = server.connect(server.http, false).await;
    http.write_all(b"GET /first HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut http, "/first").await;
    let mut echo = server.connect_to_echo(false).await;
    echo.write_all(b"second\n").await.unwrap();
    timeout(A_WHILE, echo.read_u8()).await.expect_err("the second connection should wait");
    drop(http);
    until(&mut echo, "second\n").await;

    let mut http = server.connect(server.http, false).await;
    http.write_all(b"GET /third HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(A_WHILE, http.read_u8()).await.expect_err("the third connection should wait");
    drop(echo);
    until(&mut http, "/third").await;
}

/// The first request occupies all of it; requests of both protocols wait for it, and one that is larger than all of it
/// waits for all of it.
#[tokio::test]
async fn all_ports_share_the_memory_of_requests() {
    let server = open(ConnectionLimits { message_bytes_max: 1024, ..ConnectionLimits::default() }).await;
    let mut busy = server.connect_to_echo(false).await;
    busy.write_all(b"slow\n").await.unwrap();
    server.echo_protocol.entered.notified().await;
    let mut echo = server.connect_to_echo(true).await;
    let large = format!("{}\n", "x".repeat(5000));
    echo.write_all(large.as_bytes()).await.unwrap();
    let mut http = server.connect(server.http, false).await;
    http.write_all(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nthird").await.unwrap();
    timeout(A_WHILE, echo.read_u8()).await.expect_err("the second request should wait");
    timeout(A_WHILE, http.read_u8()).await.expect_err("the third request should wait");
    let mut without_body = server.connect(server.http, false).await;
    without_body.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut without_body, "/x").await;
    server.echo_protocol.release.notify_one();
    until(&mut busy, "slow\n").await;
    assert_eq!(until(&mut echo, "\n").await, large);
    until(&mut http, "third").await;
}

/// A client that disconnects returns the memory of its request.
#[tokio::test]
async fn a_request_that_is_dropped_returns_its_memory() {
    let server = open(ConnectionLimits { message_bytes_max: 1024, ..ConnectionLimits::default() }).await;
    let mut unfinished = server.connect(server.http, false).await;
    unfinished.write_all(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\nsome").await.unwrap();
    let mut echo = server.connect_to_echo(false).await;
    exchange_after(&mut echo, "waits\n", || drop(unfinished)).await;
    server.still_serves().await;
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_first_request_is_dropped() {
    let server = open(ConnectionLimits { slow_client_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    for beginning in ["", "\x16", "\x16\x03\x01", "no end of line"] {
        assert_eq!(send(server.echo, beginning.as_bytes()).await, "");
    }
    let mut secure = server.connect_to_echo(true).await;
    secure.write_all(b"no end of line").await.unwrap();
    assert_eq!(until_closed(&mut secure).await, "");
    let mut undecided = server.connect(server.shared, true).await;
    assert_eq!(until_closed(&mut undecided).await, "");
    server.still_serves().await;
}

#[tokio::test]
async fn an_idle_client_is_closed_after_the_idle_timeout_only() {
    let limits =
        ConnectionLimits { slow_client_timeout: A_WHILE, idle_timeout: A_WHILE * 4, ..ConnectionLimits::default() };
    let server = open(limits).await;
    for secure in [false, true] {
        let mut stream = server.connect_to_echo(secure).await;
        exchange(&mut stream, "before\n").await;
        tokio::time::sleep(A_WHILE * 2).await;
        exchange(&mut stream, "after\n").await;
        assert_eq!(until_closed(&mut stream).await, "");
    }
}

#[tokio::test]
async fn a_slow_response_is_not_an_idle_connection() {
    let limits =
        ConnectionLimits { slow_client_timeout: A_WHILE, idle_timeout: A_WHILE, ..ConnectionLimits::default() };
    let server = open(limits).await;
    let mut stream = server.connect_to_echo(false).await;
    stream.write_all(b"slow\n").await.unwrap();
    tokio::time::sleep(A_WHILE * 3).await;
    server.echo_protocol.release.notify_one();
    assert_eq!(until_closed(&mut stream).await, "slow\n");
}

#[tokio::test]
async fn a_client_that_reads_no_response_gives_its_slot_back() {
    let limits = ConnectionLimits { connections_max: 1, slow_client_timeout: A_WHILE, ..ConnectionLimits::default() };
    let server = open(limits).await;
    for secure in [false, true] {
        let mut greedy = server.connect_to_echo(secure).await;
        // More than all buffers between server and client hold.
        let lines = "a long line\n".repeat(100_000);
        let sending = tokio::spawn(async move { while greedy.write_all(lines.as_bytes()).await.is_ok() {} });
        let mut second = server.connect_to_echo(false).await;
        exchange(&mut second, "second\n").await;
        timeout(FOREVER, sending).await.expect("the server should have closed the connection").unwrap();
    }
}

#[tokio::test]
async fn a_drain_completes_begun_requests_and_accepts_no_connection() {
    for secure in [false, true] {
        let server = open(ConnectionLimits::default()).await;
        let mut busy = server.connect_to_echo(secure).await;
        busy.write_all(b"slow\n").await.unwrap();
        server.echo_protocol.entered.notified().await;
        let mut idle = server.connect_to_echo(secure).await;
        exchange(&mut idle, "idle\n").await;

        server.drain.begin();
        assert_eq!(until_closed(&mut idle).await, "");
        assert!(!server.drain.wait(A_WHILE).await, "a request is still in progress");
        for address in [server.http, server.echo, server.shared] {
            assert!(TcpStream::connect(address).await.is_err(), "the server must not accept new connections");
        }
        server.echo_protocol.release.notify_one();
        assert_eq!(until_closed(&mut busy).await, "slow\n");
        assert!(server.drain.wait(FOREVER).await);
    }
}

#[tokio::test]
async fn a_panic_costs_one_connection() {
    let server = open(ConnectionLimits { connections_max: 1, ..ConnectionLimits::default() }).await;
    for secure in [false, true] {
        let mut stream = server.connect_to_echo(secure).await;
        stream.write_all(b"panic\n").await.unwrap();
        assert_eq!(until_closed(&mut stream).await, "");
        server.still_serves().await;
    }
}

#[tokio::test]
async fn first_bytes_stay_readable() {
    let bytes = b"as many bytes as it takes, and more than that";
    let (mut client, server) = tokio::io::duplex(1);
    let sending = tokio::spawn(async move { client.write_all(bytes).await });
    let mut stream = Prefixed::new(server);
    while stream.first_bytes().len() < FIRST_BYTES_MAX {
        stream.read_first_bytes().await.unwrap();
    }
    stream.read_first_bytes().await.expect_err("there should be no room for further bytes");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    sending.await.unwrap().unwrap();
    assert_eq!(all, bytes);
}

#[test]
fn tls_is_told_apart_from_plain_protocols() {
    for (first_bytes, want) in [
        (&b"\x16\x03\x01\x02\x00\x01"[..], Some(true)),
        (b"\x16\x03\x03", Some(true)),
        (b"\x16\x03", None),
        (b"\x16", None),
        (b"", None),
        (b"\x16\x03\x00\x00", Some(false)), // a MongoDB message of 790 bytes
        (b"\x16\x01\x00\x00", Some(false)),
        (b"GET", Some(false)),
        (b"\x00", Some(false)),
    ] {
        assert_eq!(begins_tls(first_bytes), want, "{first_bytes:?}");
    }
}

#[test]
fn an_unusable_certificate_is_explained() {
    for (certificate, key) in
        [("", ""), ("not PEM", "not PEM"), ("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----", "")]
    {
        let error = tls_config(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("TLS cannot be set up"), "{error}");
    }
}
