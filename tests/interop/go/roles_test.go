package interop

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// credential is a TokenCredential, as azidentity would have one: claims that are signed anew for each token.
type credential struct {
	w      *world
	claims item
	lives  time.Duration
}

func (c credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.claims["exp"] = time.Now().Add(c.lives).Unix()
	// Were it told the truth, the SDK would not send a token that has expired.
	return azcore.AccessToken{Token: signed(c.w, c.claims), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// signed makes a JSON Web Token, RS256.
func signed(w *world, claims item) string {
	key := decode(w, must(os.ReadFile(filepath.Join(os.Getenv("PLEIAD_TOKENS"), "private_key.json")))(w))
	number := func(name string) *big.Int {
		return new(big.Int).SetBytes(must(base64.RawURLEncoding.DecodeString(key[name].(string)))(w))
	}
	pair := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: number("n"), E: int(number("e").Int64())},
		D:         number("d"),
		Primes:    []*big.Int{number("p"), number("q")},
	}
	part := func(value item) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(value))(w)) }
	text := part(item{"typ": "JWT", "alg": "RS256", "kid": key["kid"]}) + "." + part(claims)
	digest := sha256.Sum256([]byte(text))
	signature := must(rsa.SignPKCS1v15(rand.Reader, pair, crypto.SHA256, digest[:]))(w)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func claims(principal string) item {
	return item{"iss": "https://issuer.example/", "aud": "https://cosmos.azure.com", "oid": principal}
}

// carrying is the container as these claims see it.
func (w *world) carrying(container *azcosmos.ContainerClient, claims item, lives time.Duration) *azcosmos.ContainerClient {
	w.Helper()
	endpoint, options := w.place()
	client := must(azcosmos.NewClient(endpoint, credential{w, claims, lives}, options))(w)
	return must(client.NewContainer(w.database.ID(), container.ID()))(w)
}

// shop has six items under two keys in two partitions.
func (w *world) shop() *azcosmos.ContainerClient {
	w.Helper()
	container := w.make(manual(12000), "/pk")
	for n, id := range []string{"0", "1", "2", "3", "4", "5"} {
		key := []string{"a", "b"}[n%2]
		must(container.CreateItem(ctx, text(key), encode(item{"id": id, "pk": key, "n": n}), nil))(w)
	}
	return container
}

func TestAReaderReadsAndDoesNotWrite(t *testing.T) {
	overBoth(t, func(w *world) {
		shop := w.shop()
		mine := w.carrying(shop, claims("reader"), time.Hour)
		for range 2 {
			equal(w, w.read(mine, text("a"), "0")["n"].(float64), 0)
			refused[azcosmos.ItemResponse](w, 403)(mine.CreateItem(ctx, text("a"), encode(item{"id": "new", "pk": "a"}), nil))
			refused[azcosmos.ItemResponse](w, 403)(mine.DeleteItem(ctx, text("a"), "0", nil))
			identities := []azcosmos.ItemIdentity{{ID: "0", PartitionKey: text("a")}, {ID: "1", PartitionKey: text("b")}}
			equal(w, len(must(mine.ReadManyItems(ctx, identities, nil))(w).Items), 2)
			w.split(shop)
		}
	})
}

func TestAContributorWritesAndDoesNotManage(t *testing.T) {
	overBoth(t, func(w *world) {
		mine := w.carrying(w.shop(), claims("contributor"), time.Hour)
		must(mine.UpsertItem(ctx, text("a"), encode(item{"id": "new", "pk": "a"}), nil))(w)
		must(mine.DeleteItem(ctx, text("a"), "new", nil))(w)
		refused[azcosmos.ContainerResponse](w, 403)(mine.Delete(ctx, nil))
	})
}

func TestARoleOfOnesOwnAllowsWhatItSays(t *testing.T) {
	overBoth(t, func(w *world) {
		shop := w.shop()
		mine := w.carrying(shop, claims("collector"), time.Hour)
		must(mine.CreateItem(ctx, text("a"), encode(item{"id": "new", "pk": "a"}), nil))(w)
		refused[azcosmos.ItemResponse](w, 403)(mine.ReadItem(ctx, text("a"), "new", nil))
		equal(w, w.read(shop, text("a"), "new")["id"].(string), "new")
	})
}

func TestAGroupCountsAndAStrangerDoesNot(t *testing.T) {
	overBoth(t, func(w *world) {
		shop, member := w.shop(), claims("somebody")
		member["groups"] = []string{"reader"}
		equal(w, w.read(w.carrying(shop, member, time.Hour), text("a"), "0")["n"].(float64), 0)
		stranger := w.carrying(shop, claims("somebody"), time.Hour)
		refused[azcosmos.ItemResponse](w, 403)(stranger.ReadItem(ctx, text("a"), "0", nil))
	})
}

func TestATokenThatIsNotGoodIs401(t *testing.T) {
	overBoth(t, func(w *world) {
		shop, elsewhere := w.shop(), claims("reader")
		elsewhere["aud"] = "https://vault.azure.net"
		for _, mine := range []*azcosmos.ContainerClient{
			w.carrying(shop, elsewhere, time.Hour),
			w.carrying(shop, claims("reader"), -time.Hour),
		} {
			refused[azcosmos.ItemResponse](w, 401)(mine.ReadItem(ctx, text("a"), "0", nil))
		}
	})
}
