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

// credential is a TokenCredential, such as those of azidentity: it signs its claims for each token.
type credential struct {
	w        *world
	claims   item
	lifetime time.Duration
}

func (c credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.claims["exp"] = time.Now().Add(c.lifetime).Unix()
	// With the real expiry time the SDK would not send an expired token.
	return azcore.AccessToken{Token: signed(c.w, c.claims), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// signed returns a JSON Web Token, RS256.
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

// withClaims is a client of the container that authenticates with these claims.
func (w *world) withClaims(container *azcosmos.ContainerClient, claims item, lifetime time.Duration) *azcosmos.ContainerClient {
	w.Helper()
	endpoint, options := w.clientOptions()
	client := must(azcosmos.NewClient(endpoint, credential{w, claims, lifetime}, options))(w)
	return must(client.NewContainer(w.database.ID(), container.ID()))(w)
}

// shop is a container with six items under two keys in two partitions.
func (w *world) shop() *azcosmos.ContainerClient {
	w.Helper()
	container := w.make(manual(12000), "/pk")
	for n, id := range []string{"0", "1", "2", "3", "4", "5"} {
		key := []string{"a", "b"}[n%2]
		must(container.CreateItem(ctx, text(key), encode(item{"id": id, "pk": key, "n": n}), nil))(w)
	}
	return container
}

func TestAReaderMayReadAndNotWrite(t *testing.T) {
	overBoth(t, func(w *world) {
		shop := w.shop()
		target := w.withClaims(shop, claims("reader"), time.Hour)
		for range 2 {
			equal(w, w.read(target, text("a"), "0")["n"].(float64), 0)
			refused[azcosmos.ItemResponse](w, 403)(target.CreateItem(ctx, text("a"), encode(item{"id": "new", "pk": "a"}), nil))
			refused[azcosmos.ItemResponse](w, 403)(target.DeleteItem(ctx, text("a"), "0", nil))
			identities := []azcosmos.ItemIdentity{{ID: "0", PartitionKey: text("a")}, {ID: "1", PartitionKey: text("b")}}
			equal(w, len(must(target.ReadManyItems(ctx, identities, nil))(w).Items), 2)
			w.split(shop)
		}
	})
}

func TestAContributorMayWriteAndNotManage(t *testing.T) {
	overBoth(t, func(w *world) {
		target := w.withClaims(w.shop(), claims("contributor"), time.Hour)
		must(target.UpsertItem(ctx, text("a"), encode(item{"id": "new", "pk": "a"}), nil))(w)
		must(target.DeleteItem(ctx, text("a"), "new", nil))(w)
		refused[azcosmos.ContainerResponse](w, 403)(target.Delete(ctx, nil))
	})
}

func TestACustomRoleAllowsOnlyItsActions(t *testing.T) {
	overBoth(t, func(w *world) {
		shop := w.shop()
		target := w.withClaims(shop, claims("collector"), time.Hour)
		must(target.CreateItem(ctx, text("a"), encode(item{"id": "new", "pk": "a"}), nil))(w)
		refused[azcosmos.ItemResponse](w, 403)(target.ReadItem(ctx, text("a"), "new", nil))
		equal(w, w.read(shop, text("a"), "new")["id"].(string), "new")
	})
}

func TestARoleOfAGroupAppliesAndAPrincipalWithoutRoleIs403(t *testing.T) {
	overBoth(t, func(w *world) {
		shop, member := w.shop(), claims("unassigned")
		member["groups"] = []string{"reader"}
		equal(w, w.read(w.withClaims(shop, member, time.Hour), text("a"), "0")["n"].(float64), 0)
		unassigned := w.withClaims(shop, claims("unassigned"), time.Hour)
		refused[azcosmos.ItemResponse](w, 403)(unassigned.ReadItem(ctx, text("a"), "0", nil))
	})
}

func TestAnInvalidTokenIs401(t *testing.T) {
	overBoth(t, func(w *world) {
		shop, wrongAudience := w.shop(), claims("reader")
		wrongAudience["aud"] = "https://vault.azure.net"
		for _, target := range []*azcosmos.ContainerClient{
			w.withClaims(shop, wrongAudience, time.Hour),
			w.withClaims(shop, claims("reader"), -time.Hour),
		} {
			refused[azcosmos.ItemResponse](w, 401)(target.ReadItem(ctx, text("a"), "0", nil))
		}
	})
}
