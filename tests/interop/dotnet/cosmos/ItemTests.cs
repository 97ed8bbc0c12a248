using System.Net;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;
using Newtonsoft.Json.Linq;

namespace Pleiad.Interop;

/// <summary>Items, batches, bulk, patch, change feed and stored procedures, as the .NET SDK sends them.</summary>
static class ItemTests
{
    static JObject Item(string id, string key, int value) => new() { ["id"] = id, ["pk"] = key, ["n"] = value };

    [Test]
    public static async Task ItemsAreCreatedReadReplacedAndDeleted()
    {
        foreach (var endpoint in new[] { Server.Endpoint, Server.EndpointHttps })
        {
            var made = await World.Make("/pk");
            var container = World.Connect(endpoint).GetContainer(made.Database.Id, made.Id);
            var key = new PartitionKey("a");
            var created = await container.CreateItemAsync(Item("1", "a", 1), key);
            Check.Equal(HttpStatusCode.Created, created.StatusCode, "create");
            Check.True(created.RequestCharge > 0 && created.ETag != null && created.Headers.Session != null, "metadata of a create");
            var conditional = new ItemRequestOptions { IfMatchEtag = created.ETag };
            var replaced = await container.ReplaceItemAsync(Item("1", "a", 2), "1", key, conditional);
            Check.Equal(2, (int)(await container.ReadItemAsync<JObject>("1", key)).Resource["n"], "read");
            await Refused(HttpStatusCode.PreconditionFailed, () => container.ReplaceItemAsync(Item("1", "a", 3), "1", key, conditional));
            await Refused(HttpStatusCode.Conflict, () => container.CreateItemAsync(Item("1", "a", 3), key));
            await Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(Item("2", "b", 3), key));
            var unchanged = new ItemRequestOptions { IfNoneMatchEtag = replaced.ETag };
            using (var response = await container.ReadItemStreamAsync("1", key, unchanged))
                Check.Equal(HttpStatusCode.NotModified, response.StatusCode, "read of an unchanged item");
            Check.Equal(HttpStatusCode.OK, (await container.UpsertItemAsync(Item("1", "a", 4), key)).StatusCode, "upsert");
            Check.Equal(HttpStatusCode.NoContent, (await container.DeleteItemAsync<JObject>("1", key)).StatusCode, "delete");
            await Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<JObject>("1", key));
        }
    }

    [Test]
    public static async Task ManyItemsAreRead()
    {
        var container = await World.Make("/pk", 3);
        await World.Fill(container, Enumerable.Range(0, 60).Select(n => Item($"{n}", $"key {n % 13}", n)));
        var wanted = Enumerable.Range(0, 70).Where(n => n % 3 == 0).Select(n => ($"{n}", new PartitionKey($"key {n % 13}"))).ToList();
        var read = await container.ReadManyItemsAsync<JObject>(wanted);
        Check.Bag(Enumerable.Range(0, 60).Where(n => n % 3 == 0).Select(n => $"{n}"), read.Select(item => item["id"].ToString()), "read many");
    }

    [Test]
    public static async Task BatchesAreAtomic()
    {
        var container = await World.Make("/pk");
        var key = new PartitionKey("a");
        using (var done = await container.CreateTransactionalBatch(key)
            .CreateItem(Item("1", "a", 1)).UpsertItem(Item("2", "a", 2)).ReadItem("1").DeleteItem("2").ExecuteAsync())
        {
            Check.True(done.IsSuccessStatusCode, done.ErrorMessage);
            Check.Equal(1, (int)done.GetOperationResultAtIndex<JObject>(2).Resource["n"], "read in a batch");
        }
        using (var failed = await container.CreateTransactionalBatch(key)
            .CreateItem(Item("3", "a", 3)).CreateItem(Item("1", "a", 1)).ExecuteAsync())
        {
            Check.Equal(HttpStatusCode.Conflict, failed.StatusCode, "batch");
            Check.Equal(HttpStatusCode.FailedDependency, failed[0].StatusCode, "operation before the one that failed");
        }
        Check.Sequence(["\"1\""], await World.Rows(container, "SELECT VALUE c.id FROM c"), "items after the batches");
    }

    [Test]
    public static async Task BulkWritesReachEveryPartition()
    {
        var made = await World.Make("/pk", 3);
        var container = World.Connect(adjust: options => options.AllowBulkExecution = true).GetContainer(made.Database.Id, made.Id);
        await Task.WhenAll(Enumerable.Range(0, 1000).Select(n => container.CreateItemAsync(Item($"{n}", $"key {n % 97}", n), new PartitionKey($"key {n % 97}"))));
        Check.Sequence(["1000"], await World.Rows(made, "SELECT VALUE COUNT(1) FROM c"), "items after bulk");
    }

    [Test]
    public static async Task PatchesAreConditional()
    {
        var container = await World.Make("/pk");
        var key = new PartitionKey("a");
        await container.CreateItemAsync(Item("1", "a", 1), key);
        var patched = await container.PatchItemAsync<JObject>("1", key,
            [PatchOperation.Increment("/n", 4), PatchOperation.Set("/tags", new[] { "x" }), PatchOperation.Add("/tags/-", "y")]);
        Check.Equal("5 [\"x\",\"y\"]", $"{patched.Resource["n"]} {World.Text(patched.Resource["tags"])}", "patched item");
        var condition = new PatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.n = 1" };
        await Refused(HttpStatusCode.PreconditionFailed,
            () => container.PatchItemAsync<JObject>("1", key, [PatchOperation.Remove("/tags")], condition));
    }

    [Test]
    public static async Task TheChangeFeedProcessorSeesEveryItem()
    {
        var container = await World.Make("/pk", 2);
        var leases = await World.Make("/id");
        var seen = new System.Collections.Concurrent.ConcurrentDictionary<string, bool>();
        var processor = container.GetChangeFeedProcessorBuilder("suite", (IReadOnlyCollection<JObject> changes, CancellationToken _) =>
            {
                foreach (var change in changes) seen[change["id"].ToString()] = true;
                return Task.CompletedTask;
            })
            .WithInstanceName("one").WithLeaseContainer(leases).WithPollInterval(TimeSpan.FromMilliseconds(50))
            .WithStartTime(DateTime.MinValue.ToUniversalTime()).Build();
        await processor.StartAsync();
        await World.Fill(container, Enumerable.Range(0, 100).Select(n => Item($"{n}", $"key {n % 13}", n)));
        for (var turn = 0; turn < 600 && seen.Count < 100; turn++) await Task.Delay(50);
        await processor.StopAsync();
        Check.Equal(100, seen.Count, "items that the processor saw");
    }

    [Test]
    public static async Task TheChangeFeedResumesAtEveryPage()
    {
        var container = await World.Make("/pk", 3);
        await World.Fill(container, Enumerable.Range(0, 60).Select(n => Item($"{n}", $"key {n % 13}", n)));
        var (ids, token) = (new List<string>(), (string)null);
        for (var page = 0; page < 200; page++)
        {
            var start = token == null ? ChangeFeedStartFrom.Beginning() : ChangeFeedStartFrom.ContinuationToken(token);
            var reader = World.ThroughNewClient(container).GetChangeFeedIterator<JObject>(
                start, ChangeFeedMode.Incremental, new ChangeFeedRequestOptions { PageSizeHint = 7 });
            var response = await reader.ReadNextAsync();
            token = response.ContinuationToken;
            if (response.StatusCode == HttpStatusCode.NotModified && ids.Count >= 60) break;
            ids.AddRange(response.StatusCode == HttpStatusCode.NotModified ? [] : response.Select(item => item["id"].ToString()));
            if (page == 3) await Management.Split(container.Database.Id, container.Id);
        }
        Check.Bag(Enumerable.Range(0, 60).Select(n => $"{n}"), ids, "changes");
    }

    [Test]
    public static async Task StoredProceduresRun()
    {
        var container = await World.Make("/pk");
        const string body = """
            function double(name) {
                var context = getContext();
                context.getCollection().createDocument(context.getCollection().getSelfLink(), { id: name, pk: "a" },
                    function (error, item) { if (error) throw error; context.getResponse().setBody(item.id + item.id); });
            }
            """;
        await container.Scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("double", body));
        var result = await container.Scripts.ExecuteStoredProcedureAsync<string>("double", new PartitionKey("a"), ["x"]);
        Check.Equal("xx", result.Resource, "result");
        Check.Equal(HttpStatusCode.OK, (await container.ReadItemAsync<JObject>("x", new PartitionKey("a"))).StatusCode, "item of the procedure");
    }

    [Test]
    public static async Task SessionTokensMoveBetweenClients()
    {
        var container = await World.Make("/pk", 2);
        var written = await container.CreateItemAsync(Item("1", "a", 1), new PartitionKey("a"));
        var options = new ItemRequestOptions { SessionToken = written.Headers.Session, ConsistencyLevel = ConsistencyLevel.Session };
        var read = await World.ThroughNewClient(container).ReadItemAsync<JObject>("1", new PartitionKey("a"), options);
        Check.Equal(1, (int)read.Resource["n"], "read in the session of another client");
    }

    static Task Refused(HttpStatusCode status, Func<Task> call) =>
        Check.Throws<CosmosException>(call, error => error.StatusCode == status, $"expected {status}");
}
