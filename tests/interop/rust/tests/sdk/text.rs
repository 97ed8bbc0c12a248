//! The same SDK with binary encoding disabled: items are sent as JSON text, and both kinds are in one container.

use azure_data_cosmos::options::BinaryEncodingOptions;
use azure_data_cosmos::CosmosClient;

use crate::support::*;

both!(text_and_binary_writers_read_each_other);

async fn text_and_binary_writers_read_each_other(world: World) {
    let binary = world.make("/pk").await;
    let name = binary.read(None).await.unwrap().into_model().unwrap().id.into_owned();
    let builder =
        CosmosClient::builder().with_binary_encoding_options(BinaryEncodingOptions::new().with_enabled(false));
    let client = connect_with(world.scheme, builder, &key()).await.unwrap();
    let text = client.database_client(world.database_name.clone()).container_client(name, None).await.unwrap();

    let item = |id: &str| json!({"id": id, "pk": "a", "value": [1, -2.5, "é😀", null, {"deep": [true]}]});
    create(&text, "a", item("from text")).await.unwrap();
    create(&binary, "a", item("from binary")).await.unwrap();
    for reader in [&text, &binary] {
        for id in ["from text", "from binary"] {
            assert_eq!(plain(read(reader, "a", id).await.unwrap()), item(id));
        }
    }
}
