using Microsoft.Azure.Cosmos;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Pleiad.Interop;

/// <summary>An item of the query tests, as an application would declare it.</summary>
sealed class Reading
{
    [JsonProperty("id")] public string Id { get; set; }
    [JsonProperty("pk")] public string Device { get; set; }
    [JsonProperty("n")] public int N { get; set; }
    [JsonProperty("metric")] public double Metric { get; set; }
    [JsonProperty("kind")] public string Kind { get; set; }
    [JsonProperty("floor")] public int Floor { get; set; }
    [JsonProperty("on")] public bool On { get; set; }
    [JsonProperty("tags")] public string[] Tags { get; set; }
    [JsonProperty("place")] public Place Place { get; set; }
    [JsonProperty("parts")] public Part[] Parts { get; set; }
    [JsonProperty("at")] public DateTime At { get; set; }
    [JsonProperty("maybe", NullValueHandling = NullValueHandling.Ignore)] public int? Maybe { get; set; }
}

sealed class Place
{
    [JsonProperty("city")] public string City { get; set; }
    [JsonProperty("x")] public int X { get; set; }
}

sealed class Part
{
    [JsonProperty("name")] public string Name { get; set; }
    [JsonProperty("grams")] public int Grams { get; set; }
}

/// <summary>
/// The items of the query tests, in five partitions under 23 keys. `mixed` has every JSON type in turn, and is missing from
/// one item in eight. Expected results are computed from these items and never typed by hand.
/// </summary>
static class Readings
{
    public const int Partitions = 5;
    public const string OneKey = "device 7";

    static readonly string[] Kinds = ["humidity", "pressure", "temperature"];
    static readonly string[] Tags = ["cold", "new", "loud", "blue", "far"];

    public static readonly List<Reading> All = Enumerable.Range(0, 120).Select(Make).ToList();
    static readonly Lazy<Task<Container>> Shared = new(() => MakeContainer(Partitions));

    /// <summary>The container that tests may read and must not change.</summary>
    public static Task<Container> Container() => Shared.Value;

    public static async Task<Container> MakeContainer(int partitions)
    {
        var properties = new ContainerProperties(Server.Unique("readings"), "/pk");
        World.AddComposite(properties, "/kind", "-/metric");
        World.AddComposite(properties, "/floor", "/n");
        World.AddComposite(properties, "/mixed", "-/n");
        var container = await World.Make(properties, partitions);
        await World.Fill(container, All.Select(Item));
        return container;
    }

    static Reading Make(int n) => new()
    {
        Id = $"{n:D4}",
        Device = $"device {n % 23}",
        N = n,
        Metric = n * 37 % 101 / 4.0,
        Kind = Kinds[n % 3],
        Floor = n % 5,
        On = n % 2 == 0,
        Tags = Enumerable.Range(0, n % 4).Select(step => Tags[(n + step) % 5]).ToArray(),
        Place = new Place { City = $"city {n % 7}", X = n % 10 },
        Parts = Enumerable.Range(0, n % 3).Select(step => new Part { Name = $"part {n % 3}", Grams = n * step }).ToArray(),
        At = new DateTime(2026, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddHours(n * 7),
        Maybe = n % 4 == 0 ? null : n,
    };

    static JObject Item(Reading reading)
    {
        var item = JObject.FromObject(reading);
        var n = reading.N;
        JToken[] mixed = [JValue.CreateNull(), false, true, n / 2.0, $"text {n % 40:D2}", new JArray(n), new JObject { ["n"] = n }];
        if (n % 8 != 0) item["mixed"] = mixed[n % 8 - 1];
        return item;
    }
}
