using System.Net;
using Microsoft.Azure.Documents;
using Microsoft.Azure.Documents.Client;
using Microsoft.Azure.Documents.Linq;
using Newtonsoft.Json;

namespace Pleiad.Interop;

/// <summary>A reading of a device, declared as the documentation of the years 2016 and 2017 does it.</summary>
sealed class DeviceReading
{
    [JsonProperty("id")] public string Id;
    [JsonProperty("deviceId")] public string DeviceId;
    [JsonConverter(typeof(Newtonsoft.Json.Converters.IsoDateTimeConverter))]
    [JsonProperty("readingTime")] public DateTime ReadingTime;
    [JsonProperty("metricType")] public string MetricType;
    [JsonProperty("unit")] public string Unit;
    [JsonProperty("metricValue")] public double MetricValue;
}

/// <summary>
/// The calls of the oldest documentation of the service, with the client of its time: databases, a partitioned collection
/// of 20,000 RU/s, documents, LINQ over one and all partitions, stored procedures.
/// </summary>
static class DeviceTests
{
    static readonly DocumentClient Client = new(
        new Uri(Server.Endpoint), Server.Key, handler: (HttpClientHandler)null,
        connectionPolicy: new ConnectionPolicy { ConnectionMode = ConnectionMode.Gateway, EnableEndpointDiscovery = false });

    static readonly DateTime Start = new(2016, 4, 1, 8, 30, 0, DateTimeKind.Utc);

    static DeviceReading Reading(int n) => new()
    {
        Id = $"XMS-{n:D3}-FE24C",
        DeviceId = $"XMS-{n % 17:D4}",
        MetricType = n % 2 == 0 ? "Temperature" : "Humidity",
        MetricValue = 90 + n * 37 % 101 / 4.0,
        Unit = n % 2 == 0 ? "Fahrenheit" : "Percent",
        ReadingTime = Start.AddMinutes(n),
    };

    static async Task<Uri> MakeCollection(string database)
    {
        await Client.CreateDatabaseAsync(new Database { Id = database });
        var collection = new DocumentCollection { Id = "coll" };
        collection.PartitionKey.Paths.Add("/deviceId");
        await Client.CreateDocumentCollectionAsync(
            UriFactory.CreateDatabaseUri(database), collection, new RequestOptions { OfferThroughput = 20000 });
        return UriFactory.CreateDocumentCollectionUri(database, "coll");
    }

    static async Task WithReadings(Func<string, Uri, List<DeviceReading>, Task> test)
    {
        var database = Server.Unique("devices");
        var collection = await MakeCollection(database);
        var readings = Enumerable.Range(0, 60).Select(Reading).ToList();
        foreach (var reading in readings) await Client.CreateDocumentAsync(collection, reading);
        await test(database, collection, readings);
        await Client.DeleteDatabaseAsync(UriFactory.CreateDatabaseUri(database));
    }

    static RequestOptions Of(string device) => new() { PartitionKey = new PartitionKey(device) };

    [Test]
    public static async Task S60_S70_ACollectionHasTheThroughputItWasCreatedWith()
    {
        var database = Server.Unique("devices");
        var collection = await MakeCollection(database);
        var link = (await Client.ReadDocumentCollectionAsync(collection)).Resource.SelfLink;
        var offer = (OfferV2)Client.CreateOfferQuery().Where(one => one.ResourceLink == link).AsEnumerable().Single();
        Check.Equal(20000, offer.Content.OfferThroughput, "offer");
        await Client.ReplaceOfferAsync(new OfferV2(offer, 21000));
        var replaced = (OfferV2)Client.CreateOfferQuery().Where(one => one.ResourceLink == link).AsEnumerable().Single();
        Check.Equal(21000, replaced.Content.OfferThroughput, "offer after a replace");
        await Client.DeleteDatabaseAsync(UriFactory.CreateDatabaseUri(database));
    }

    [Test]
    public static async Task S95_S96_S99_S100_DocumentsAreCreatedReadReplacedAndDeletedByKeyAndId()
    {
        var database = Server.Unique("devices");
        var collection = await MakeCollection(database);
        var reading = new DeviceReading
        {
            Id = "XMS-001-FE24C", DeviceId = "XMS-0001", MetricType = "Temperature", MetricValue = 105.00, Unit = "Fahrenheit", ReadingTime = Start,
        };
        await Client.CreateDocumentAsync(collection, reading);
        var link = UriFactory.CreateDocumentUri(database, "coll", "XMS-001-FE24C");

        Document result = await Client.ReadDocumentAsync(link, Of("XMS-0001"));
        var read = (DeviceReading)(dynamic)result;
        Check.Equal(JsonConvert.SerializeObject(reading), JsonConvert.SerializeObject(read), "read");
        DeviceReading typed = await Client.ReadDocumentAsync<DeviceReading>(link, Of("XMS-0001"));
        Check.Equal(Start, typed.ReadingTime, "typed read");

        read.MetricValue = 104;
        read.ReadingTime = Start.AddHours(1);
        await Client.ReplaceDocumentAsync(link, read);
        Check.Equal(104.0, (await Client.ReadDocumentAsync<DeviceReading>(link, Of("XMS-0001"))).Document.MetricValue, "replaced");

        await Client.DeleteDocumentAsync(link, Of("XMS-0001"));
        await Check.Throws<DocumentClientException>(() => Client.ReadDocumentAsync(link, Of("XMS-0001")),
            error => error.StatusCode == HttpStatusCode.NotFound, "a deleted document");
        await Client.DeleteDatabaseAsync(UriFactory.CreateDatabaseUri(database));
    }

    [Test]
    public static Task S101_AQueryByKeyNeedsNoFanOut() => WithReadings((_, collection, readings) =>
    {
        var query = Client.CreateDocumentQuery<DeviceReading>(collection)
            .Where(m => m.MetricType == "Temperature" && m.DeviceId == "XMS-0001");
        var expected = readings.Where(m => m.MetricType == "Temperature" && m.DeviceId == "XMS-0001");
        Check.Bag(expected.Select(m => m.Id), query.ToList().Select(m => m.Id), "one key");
        return Task.CompletedTask;
    });

    [Test]
    public static Task S102_S103_AQueryOfAllPartitionsHasToBeAskedFor() => WithReadings(async (_, collection, readings) =>
    {
        var refused = Client.CreateDocumentQuery<DeviceReading>(collection).Where(m => m.MetricValue > 100).AsDocumentQuery();
        await Check.Throws<DocumentClientException>(() => refused.ExecuteNextAsync(),
            error => error.StatusCode == HttpStatusCode.BadRequest, "fan-out without the option");
        var query = Client.CreateDocumentQuery<DeviceReading>(collection, new FeedOptions { EnableCrossPartitionQuery = true })
            .Where(m => m.MetricType == "Temperature" && m.MetricValue > 100);
        var expected = readings.Where(m => m.MetricType == "Temperature" && m.MetricValue > 100);
        Check.Bag(expected.Select(m => m.Id), query.ToList().Select(m => m.Id), "all partitions");
    });

    [Test]
    public static Task S105_S106_S107_S108_ParallelQueriesHaveTheOrderOfSerialOnes() => WithReadings((_, collection, readings) =>
    {
        var expected = readings.Where(m => m.MetricValue > 95).OrderBy(m => m.ReadingTime).Select(m => m.Id).ToList();
        foreach (var (degree, buffered) in new[] { (0, -1), (10, 100), (-1, 1), (-1, -1) })
        {
            var options = new FeedOptions
            {
                EnableCrossPartitionQuery = true, MaxDegreeOfParallelism = degree, MaxBufferedItemCount = buffered, MaxItemCount = 7,
            };
            var query = Client.CreateDocumentQuery<DeviceReading>(collection, options)
                .Where(m => m.MetricValue > 95).OrderBy(m => m.ReadingTime);
            Check.Sequence(expected, query.ToList().Select(m => m.Id), $"degree {degree}, buffer {buffered}");
        }
        return Task.CompletedTask;
    });

    [Test]
    public static Task S115_S120_AStoredProcedureChangesDocumentsOfOneKey() => WithReadings(async (database, collection, _) =>
    {
        const string body = """
            function setLatest(limit) {
                var collection = getContext().getCollection();
                var accepted = collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c ORDER BY c.readingTime DESC", {},
                    function (error, documents) {
                        if (error) throw error;
                        documents[0].unit = "latest";
                        collection.replaceDocument(documents[0]._self, documents[0], function (failed, replaced) {
                            if (failed) throw failed;
                            getContext().getResponse().setBody(replaced);
                        });
                    });
                if (!accepted) throw new Error("not accepted");
            }
            """;
        await Client.CreateStoredProcedureAsync(collection, new StoredProcedure { Id = "SetLatestStateAcrossReadings", Body = body });
        var latest = await Client.ExecuteStoredProcedureAsync<DeviceReading>(
            UriFactory.CreateStoredProcedureUri(database, "coll", "SetLatestStateAcrossReadings"), Of("XMS-0001"), "XMS-001-FE24C");
        Check.Equal("latest", latest.Response.Unit, "unit of the procedure's document");
        Check.Equal("XMS-052-FE24C", latest.Response.Id, "the newest document of the key");
    });
}
