function updateMetadata() {
    var collection = getContext().getCollection();
    var created = getContext().getResponse().getBody();
    var filter = "SELECT * FROM c WHERE c.id = '_metadata'";

    var isAccepted = collection.queryDocuments(collection.getSelfLink(), filter, function (error, documents) {
        if (error) throw new Error("Error: " + error.message);
        if (documents.length !== 1) throw new Error("Unable to find the metadata document.");
        var metadata = documents[0];
        metadata.createdDocuments += 1;
        metadata.createdNames += " " + created.id;
        var isAccepted = collection.replaceDocument(metadata._self, metadata, function (error) {
            if (error) throw new Error("Unable to update the metadata.");
        });
        if (!isAccepted) throw new Error("Unable to update the metadata, abort.");
    });
    if (!isAccepted) throw new Error("Unable to read the metadata, abort.");
}
