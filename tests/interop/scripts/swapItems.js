function swapItems(firstId, secondId) {
    var collection = getContext().getCollection();
    var filter = {
        query: "SELECT * FROM players p WHERE p.id IN (@first, @second)",
        parameters: [{ name: "@first", value: firstId }, { name: "@second", value: secondId }]
    };

    var isAccepted = collection.queryDocuments(collection.getSelfLink(), filter, {}, function (error, players) {
        if (error) throw error;
        if (players.length !== 2) throw new Error("Unable to find both players.");
        swap(players[0], players[1]);
    });
    if (!isAccepted) throw new Error("Unable to read the players.");

    function swap(one, other) {
        var item = one.item;
        one.item = other.item;
        other.item = item;
        replace(one, function () {
            replace(other, function () {
                getContext().getResponse().setBody(true);
            });
        });
    }

    function replace(player, then) {
        var isAccepted = collection.replaceDocument(player._self, player, { etag: player._etag }, function (error) {
            if (error) throw error;
            then();
        });
        if (!isAccepted) throw new Error("Unable to update player " + player.id);
    }
}
