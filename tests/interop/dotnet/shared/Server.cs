using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace Pleiad.Interop;

/// <summary>Where the server is: xtask starts it and says so in the environment.</summary>
static class Server
{
    public static readonly string Endpoint = Read("PLEIAD_ENDPOINT");
    public static readonly string EndpointHttps = Read("PLEIAD_ENDPOINT_HTTPS");
    public static readonly string Key = Read("PLEIAD_KEY");

    /// <summary>One pool of connections for all clients, which trusts the server's generated certificate and no other.</summary>
    public static readonly HttpMessageHandler Connections = new SocketsHttpHandler
    {
        SslOptions = new SslClientAuthenticationOptions { RemoteCertificateValidationCallback = IsTrusted },
    };

    static string Read(string name) =>
        Environment.GetEnvironmentVariable(name) ?? throw new FailedException($"{name} is not set; run `cargo xtask interop dotnet`");

    static bool IsTrusted(object sender, X509Certificate certificate, X509Chain chain, SslPolicyErrors errors)
    {
        if ((errors & ~SslPolicyErrors.RemoteCertificateChainErrors) != 0) return false;
        var policy = new X509ChainPolicy { TrustMode = X509ChainTrustMode.CustomRootTrust, RevocationMode = X509RevocationMode.NoCheck };
        policy.CustomTrustStore.ImportFromPemFile(Read("PLEIAD_CA_FILE"));
        using var ours = new X509Chain { ChainPolicy = policy };
        return ours.Build(new X509Certificate2(certificate));
    }

    public static string Unique(string prefix) => $"{prefix}-{Guid.NewGuid().ToString()[..13]}";
}
