using System.Collections.ObjectModel;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Pleiad.Interop;

/// <summary>Sets up the SDK, unmodified, in gateway mode: clients, and a database that is deleted at the end.</summary>
static class World
{
    static readonly string DatabaseName = Server.Unique("dotnet");
    static readonly Lazy<Task<Database>> Created = new(async () => await Connect().CreateDatabaseIfNotExistsAsync(DatabaseName));

    public static Task<Database> Database() => Created.Value;

    /// <summary>A new client, without anything cached.</summary>
    public static CosmosClient Connect(string endpoint = null, Action<CosmosClientOptions> adjust = null)
    {
        var options = new CosmosClientOptions
        {
            ConnectionMode = ConnectionMode.Gateway,
            LimitToEndpoint = true,
            HttpClientFactory = () => new HttpClient(Server.Connections, disposeHandler: false),
        };
        adjust?.Invoke(options);
        return new CosmosClient(endpoint ?? Server.Endpoint, Server.Key, options);
    }

    /// <summary>The same container through a new client.</summary>
    public static Container ThroughNewClient(Container container) =>
        Connect().GetContainer(container.Database.Id, container.Id);

    /// <summary>A new container with this many partitions.</summary>
    public static async Task<Container> Make(ContainerProperties properties, int partitions)
    {
        var database = await Database();
        return await database.CreateContainerAsync(properties, 6000 * partitions);
    }

    public static Task<Container> Make(string key, int partitions = 1) =>
        Make(new ContainerProperties(Server.Unique("c"), key), partitions);

    public static async Task Fill(Container container, IEnumerable<JObject> items)
    {
        await Parallel.ForEachAsync(items, new ParallelOptions { MaxDegreeOfParallelism = 8 },
            async (item, _) => await container.CreateItemAsync(item));
    }

    /// <summary>All rows of one iterator, each as its JSON text.</summary>
    public static async Task<List<string>> Rows(Container container, string text, QueryRequestOptions options = null) =>
        await Rows(container.GetItemQueryIterator<JToken>(text, requestOptions: options));

    public static async Task<List<string>> Rows(FeedIterator<JToken> iterator)
    {
        var rows = new List<string>();
        while (iterator.HasMoreResults)
            rows.AddRange((await iterator.ReadNextAsync()).Select(Text));
        return rows;
    }

    public static string Text(JToken token) => token.ToString(Newtonsoft.Json.Formatting.None);

    public static async Task DeleteDatabase()
    {
        if (Created.IsValueCreated) await (await Created.Value).DeleteAsync();
    }

    /// <summary>A composite index: a path with a minus is descending.</summary>
    public static void AddComposite(ContainerProperties properties, params string[] paths)
    {
        var composite = new Collection<CompositePath>();
        foreach (var path in paths)
            composite.Add(new CompositePath
            {
                Path = path.TrimStart('-'),
                Order = path.StartsWith('-') ? CompositePathSortOrder.Descending : CompositePathSortOrder.Ascending,
            });
        properties.IndexingPolicy.CompositeIndexes.Add(composite);
    }
}
