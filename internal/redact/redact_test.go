package redact

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestArgs(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		// NAME=VALUE
		{[]string{"env", "HF_TOKEN=hf_abc", "python"}, []string{"env", "HF_TOKEN=***", "python"}},
		{[]string{"OPENAI_API_KEY=sk-1 2"}, []string{"OPENAI_API_KEY=***"}},
		{[]string{"--password=a b", "c"}, []string{"--password=***", "c"}},
		{[]string{"-token=abc"}, []string{"-token=***"}},
		{[]string{"db.userPassword=x", "apiKey=y", "APIKey=z", "AWSSecretAccessKey=v"},
			[]string{"db.userPassword=***", "apiKey=***", "APIKey=***", "AWSSecretAccessKey=***"}},
		{[]string{"PGPASSWORD=x", "AWS_ACCESS_KEY_ID=AKIA", "ssh_private_key=k", "apikey=1", "token2=x", "--secretkey=x"},
			[]string{"PGPASSWORD=***", "AWS_ACCESS_KEY_ID=***", "ssh_private_key=***", "apikey=***", "token2=***", "--secretkey=***"}},
		{[]string{"+trainer.api_key=abc", "auth[token]=abc", "--conf=fs.secret.key=abc"},
			[]string{"+trainer.api_key=***", "auth[token]=***", "--conf=fs.secret.key=***"}},
		{[]string{"password="}, []string{"password="}},

		// --NAME VALUE
		{[]string{"x", "--password", "hunter2", "y"}, []string{"x", "--password", "***", "y"}},
		{[]string{"--hfToken", "-abc", "-api-key", "k"}, []string{"--hfToken", "***", "-api-key", "***"}},
		{[]string{"--use-token", "--verbose", "x"}, []string{"--use-token", "--verbose", "x"}},
		{[]string{"--token", "--", "x"}, []string{"--token", "--", "x"}},
		{[]string{"--password", "", "x"}, []string{"--password", "", "x"}},
		{[]string{"--wrap=cmd --password abc --epochs 3"}, []string{"--wrap=cmd --password *** --epochs 3"}},

		// NAME: VALUE
		{[]string{"curl", "-H", "Authorization: Bearer x y"}, []string{"curl", "-H", "Authorization: ***"}},
		{[]string{"curl", "-H", "X-Api-Key:abc"}, []string{"curl", "-H", "X-Api-Key:***"}},
		{[]string{"--header=Proxy-Authorization: Basic x="}, []string{"--header=Proxy-Authorization: ***"}},
		{[]string{`{"user": "a", "password": "b\"c", "n": 1}`}, []string{`{"user": "a", "password": ***, "n": 1}`}},
		{[]string{`{"token":12,"secret":["a","b"]}`}, []string{`{"token":***,"secret":***`}},
		{[]string{`"{\"token\": \"a b\", \"n\": 1}"`}, []string{`"{\"token\": ***, \"n\": 1}"`}},

		// URLs
		{[]string{"https://me:pw@host/p?x=a@b"}, []string{"https://***@host/p?x=a@b"}},
		{[]string{"--db=postgres://me:p@ss@host:5432/d"}, []string{"--db=postgres://***@host:5432/d"}},
		{[]string{"https://h/p?token=abc&user=x#y"}, []string{"https://h/p?token=***&user=x#y"}},
		{[]string{"git clone https://t0k@h/x https://h/@y"}, []string{"git clone https://***@h/x https://h/@y"}},

		// Scripts
		{[]string{"sh", "-c", "TOKEN=abc; python x.py"}, []string{"sh", "-c", "TOKEN=***; python x.py"}},
		{[]string{"sh", "-c", `PASSWORD="a\"b c" run`}, []string{"sh", "-c", `PASSWORD=*** run`}},
		{[]string{"bash", "-lc", `PASSWORD="a b"c run && KEY=1`}, []string{"bash", "-lc", `PASSWORD=*** run && KEY=1`}},
		{[]string{"sh", "-c", `curl -H "Authorization: Bearer x" u`}, []string{"sh", "-c", `curl -H "Authorization: ***" u`}},
		{[]string{"sh", "-c", `curl "http://h?token=abc" -o f`}, []string{"sh", "-c", `curl "http://h?token=***" -o f`}},
		{[]string{"sh", "-c", `x "--token" "a b" c`}, []string{"sh", "-c", `x "--token" *** c`}},
		{[]string{"sh", "-c", `x "TOKEN=a b" c`}, []string{"sh", "-c", `x "TOKEN=***" c`}},
		{[]string{"python", "-c", `os.environ["HF_TOKEN"] = "abc"; go(password='x')`},
			[]string{"python", "-c", `os.environ["HF_TOKEN"] = ***; go(password=***)`}},

		// unchanged
		stays("--max-tokens", "512", "--tokenizer", "x", "--num_tokens=7", "tokenize=1", "maxTokens=3"),
		stays("--monkey", "x", "--key=2", "sort", "-k", "2", "primary_key=id", "secretary=x", "passwords=3", "-pSECRET"),
		stays("https://host/a@b", "git@github.com:a/b", "registry/secret-server:1.2", "token.py", "tests/test_token.py::test_x"),
		stays("sh", "-c", `if [ "$token" == x ]; then TOKEN= run; fi`),
		stays(), stays(""),
	} {
		if got := (Rules{}).Args(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

// stays returns arguments without secrets.
func stays(args ...string) struct{ in, want []string } {
	return struct{ in, want []string }{args, args}
}

func TestArgs_DoesNotModifyInput(t *testing.T) {
	args := []string{"x", "--password", "hunter2"}
	Rules{}.Args(args)
	if args[2] != "hunter2" {
		t.Errorf("Args changed its input to %q", args)
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		in, want string
	}{
		{[]string{`-p(\S+)`}, "mysql -pabc -pd", "mysql -p*** -p***"},
		{[]string{`\d{4}`}, "a 1234 b", "a *** b"},
		{[]string{`(a)|b`}, "xbya", "x***y***"},
		{[]string{`token=\w+ id=(\d+)`}, "x token=abc id=12", "x token=*** id=***"}, // patterns match the original text
		{[]string{`x*`}, "abc", "abc"},
		{[]string{Off, "b"}, "PASSWORD=b", "PASSWORD=b"},
	} {
		rules, err := New(c.patterns)
		if err != nil {
			t.Fatal(err)
		}
		if got := rules.Args([]string{c.in}); got[0] != c.want {
			t.Errorf("patterns %q redact %q to %q, want %q", c.patterns, c.in, got[0], c.want)
		}
	}

	if _, err := New([]string{"("}); err == nil || !strings.Contains(err.Error(), `"("`) {
		t.Errorf("New with the pattern \"(\": error %v, want one that contains the pattern", err)
	}
}

func TestError(t *testing.T) {
	err := Rules{}.Error(fmt.Errorf("run %q: %w", "TOKEN=a\"b", fs.ErrNotExist), []string{"TOKEN=a\"b", "x"})
	if err.Error() != `run "TOKEN=***": file does not exist` || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("redacted error %v, want one that contains TOKEN=*** and wraps fs.ErrNotExist", err)
	}
	if err := (Rules{}).Error(nil, []string{"TOKEN=a"}); err != nil {
		t.Errorf("Error of nil: %v, want nil", err)
	}
}

func FuzzArgs(f *testing.F) {
	f.Add("hunter2", "sh -c 'x'")
	f.Add("a b\"c'd", `{"token": "x"}`)
	f.Add("\\", "https://u@h")
	f.Fuzz(func(t *testing.T, secret, other string) {
		const mark = "s3cr3t"
		if isScriptOption(other) { // in a script, the value would end at a space
			return
		}
		secret = mark + secret + mark
		args := []string{
			other, "PASSWORD=" + secret, "--apiKey=" + secret, "--token", secret, other,
			"Authorization: " + secret, "--x=https://" + urlPart(secret) + "@host/",
		}

		got := Rules{}.Args(args)
		if len(got) != len(args) {
			t.Fatalf("%d arguments became %d", len(args), len(got))
		}
		for i, arg := range got {
			if args[i] != other && strings.Contains(arg, mark) {
				t.Errorf("%q became %q, want the secret hidden", args[i], arg)
			}
		}
	})
}

// urlPart returns s without characters that end the authority of a URL.
func urlPart(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/?#\\\"<> \t\r\n", r) {
			return -1
		}
		return r
	}, s)
}

// TestArgs_IsLinear would take too long if Args searched the whole argument for each secret.
func TestArgs_IsLinear(t *testing.T) {
	for _, part := range []string{"token=a ", "a://u@h ", `token="a`, `"token": "`, "-H 'token: x\n", "--token --", `\"`} {
		long := strings.Repeat(part, 1<<21/len(part))
		Rules{}.Args([]string{"sh", "-c", long})
	}
}
