package s3

import "testing"

// TestRegions are those that CDI's importer derives.
func TestRegions(t *testing.T) {
	for host, want := range map[string]string{
		"s3.eu-west-1.amazonaws.com": "eu-west-1", "bucket.s3.us-east-2.amazonaws.com": "us-east-2", "minio.example.com:9000": "minio", "s3.amazonaws.com": "s3",
	} {
		if got := regionOf(host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for of, want := range map[string]string{
		"https://s3.example.com/bucket/web.ova":       "https://s3.example.com/bucket/web.ova",
		"http://127.0.0.1:9/bucket/a%20b+c=d/%C3%BC/": "http://127.0.0.1:9/bucket/a%20b%2Bc%3Dd/%C3%BC",
	} {
		o, err := Open(of, "", "key", "secret")
		if err != nil {
			t.Fatal(err)
		}
		if got := o.URL(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := Open("https://a b/", "", "key", "secret"); err == nil || err.Error() != "it is no URL" {
		t.Errorf("got %v", err)
	}
}
