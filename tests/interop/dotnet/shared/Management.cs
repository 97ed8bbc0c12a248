using System.Globalization;
using System.Security.Cryptography;
using System.Text;

namespace Pleiad.Interop;

/// <summary>Client of the management API (docs/management.md).</summary>
static class Management
{
    static readonly HttpClient Http = new();

    /// <summary>Splits the largest partition; returns when it has happened.</summary>
    public static Task Split(string database, string container) =>
        Call(HttpMethod.Post, $"containers/{database}/{container}/partitions/split?wait=true", "{}");

    public static async Task<string> Call(HttpMethod method, string what, string body)
    {
        var path = $"_pleiad/v1/{what}";
        var date = DateTime.UtcNow.ToString("r", CultureInfo.InvariantCulture);
        var signed = $"{method.Method.ToLowerInvariant()}\npleiad\n{path.Split('?')[0]}\n{date.ToLowerInvariant()}\n\n";
        var signature = Convert.ToBase64String(
            HMACSHA256.HashData(Convert.FromBase64String(Server.Key), Encoding.UTF8.GetBytes(signed)));
        using var request = new HttpRequestMessage(method, new Uri(new Uri(Server.Endpoint), path))
        {
            Content = new StringContent(body),
        };
        request.Headers.TryAddWithoutValidation("x-ms-date", date);
        request.Headers.TryAddWithoutValidation("authorization", Uri.EscapeDataString($"type=master&ver=1.0&sig={signature}"));
        using var response = await Http.SendAsync(request);
        var text = await response.Content.ReadAsStringAsync();
        Check.True(response.IsSuccessStatusCode, $"{method} {path}: {(int)response.StatusCode} {text}");
        return text;
    }
}
