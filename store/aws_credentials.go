package store

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/internal/durable"
)

// A credentialsProvider finds the credentials for S3 when they are first needed, in the places that AWS tools use: the
// environment, ~/.aws/credentials, and the services of the pod or the instance.
type credentialsProvider struct {
	region string

	mu   sync.Mutex
	keys credentials // ID is "" until the credentials are known
}

const (
	// metadataTimeout limits the requests to the services of a pod or an instance.
	metadataTimeout = 2 * time.Second

	// expiryMargin is how long before their expiration credentials are renewed.
	expiryMargin = 5 * time.Minute

	maxMetadata = 1 << 20 // bytes of a response or a file
)

var errNoCredentials = errors.New(
	"no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")

// get returns valid credentials.
func (r *credentialsProvider) get(ctx context.Context) (credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys.ID != "" && (r.keys.Expire.IsZero() || time.Until(r.keys.Expire) > expiryMargin) {
		return r.keys, nil
	}

	k, err := r.find(ctx)
	switch {
	case err != nil:
		return credentials{}, err
	case k.ID == "" || k.Secret == "":
		return credentials{}, errNoCredentials
	}
	r.keys = k
	return k, nil
}

// find tries all places in turn. If there are no credentials, the result has no ID.
func (r *credentialsProvider) find(ctx context.Context) (credentials, error) {
	k := credentials{ID: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY")}
	k.Token = os.Getenv("AWS_SESSION_TOKEN")
	if k.ID != "" && k.Secret != "" {
		return k, nil
	}
	if k, err := profileCredentials(); err != nil || k.ID != "" {
		return k, err
	}

	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	switch {
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return r.webIdentityCredentials(ctx)
	case os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")+os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		return containerCredentials(ctx)
	case strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true"):
		return credentials{}, nil
	}
	k, err := instanceCredentials(ctx)
	if err != nil { // most machines are not instances of a cloud
		return credentials{}, errNoCredentials
	}
	return k, nil
}

// profileCredentials reads the profile AWS_PROFILE of ~/.aws/credentials. A missing file means no credentials, or an
// error if AWS_PROFILE is set.
func profileCredentials() (credentials, error) {
	path := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return credentials{}, nil
		}
		path = filepath.Join(home, ".aws", "credentials")
	}
	profile := os.Getenv("AWS_PROFILE")

	data, err := durable.ReadRegular(path, maxMetadata)
	if err != nil && profile == "" {
		return credentials{}, nil
	}
	if err != nil {
		return credentials{}, fmt.Errorf("read the credentials of AWS_PROFILE: %w", err)
	}
	k, found := parseProfile(data, cmp.Or(profile, "default"))
	if profile != "" && !found {
		return credentials{}, errors.New("the credentials file has no profile of the name in AWS_PROFILE")
	}
	return k, nil
}

// parseProfile reads the given profile from a credentials file, which has lines of the form [PROFILE] and NAME = VALUE.
func parseProfile(data []byte, profile string) (k credentials, found bool) {
	in := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			in = strings.TrimSpace(line[1:len(line)-1]) == profile
			found = found || in
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !in || !ok || strings.HasPrefix(line, "#") {
			continue
		}
		switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(name)) {
		case "aws_access_key_id":
			k.ID = value
		case "aws_secret_access_key":
			k.Secret = value
		case "aws_session_token":
			k.Token = value
		}
	}
	return k, found
}

// containerCredentials queries the credentials service for containers in ECS and EKS.
func containerCredentials(ctx context.Context) (credentials, error) {
	at, full := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if u, err := url.Parse(full); at != "" {
		full = "http://169.254.170.2" + at
	} else if err != nil || u.Scheme != "https" && !isMetadataHost(u.Hostname()) {
		return credentials{}, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor on this machine")
	}

	token := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if path := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path != "" {
		data, err := durable.ReadRegular(path, maxMetadata)
		if err != nil {
			return credentials{}, fmt.Errorf("read AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		token = strings.TrimSpace(string(data))
	}
	return fetchCredentials(ctx, full, [2]string{"Authorization", token})
}

// instanceCredentials queries the metadata service of an instance (IMDSv2).
func instanceCredentials(ctx context.Context) (credentials, error) {
	at := strings.TrimRight(cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"), "/")
	token, err := fetchMetadata(ctx, http.MethodPut, at+"/latest/api/token",
		[2]string{"X-aws-ec2-metadata-token-ttl-seconds", "60"})
	if err != nil {
		return credentials{}, err
	}
	header := [2]string{"X-aws-ec2-metadata-token", string(token)}
	const roles = "/latest/meta-data/iam/security-credentials/"
	role, err := fetchMetadata(ctx, http.MethodGet, at+roles, header)
	if err != nil {
		return credentials{}, err
	}

	first, _, _ := strings.Cut(strings.TrimSpace(string(role)), "\n")
	return fetchCredentials(ctx, at+roles+escape(first, false), header)
}

// webIdentityCredentials exchanges a pod's token for credentials (AssumeRoleWithWebIdentity of AWS STS).
func (r *credentialsProvider) webIdentityCredentials(ctx context.Context) (credentials, error) {
	token, err := durable.ReadRegular(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), maxMetadata)
	if err != nil {
		return credentials{}, fmt.Errorf("read AWS_WEB_IDENTITY_TOKEN_FILE: %w", err)
	}
	at := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_STS"), "https://sts."+r.region+".amazonaws.com")
	query := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {os.Getenv("AWS_ROLE_ARN")},
		"RoleSessionName":  {cmp.Or(os.Getenv("AWS_ROLE_SESSION_NAME"), "perfagent")},
		"WebIdentityToken": {strings.TrimSpace(string(token))},
	}
	data, err := fetchMetadata(ctx, http.MethodPost, strings.TrimRight(at, "/")+"/?"+query.Encode(), [2]string{})
	if err != nil {
		return credentials{}, err
	}

	var response struct {
		Keys credentials `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if err := xml.Unmarshal(data, &response); err != nil {
		return credentials{}, errors.New("the response for AWS_WEB_IDENTITY_TOKEN_FILE has no credentials")
	}
	return response.Keys, nil
}

// fetchCredentials requests a JSON document with credentials from the service at the URL at.
func fetchCredentials(ctx context.Context, at string, header [2]string) (k credentials, err error) {
	data, err := fetchMetadata(ctx, http.MethodGet, at, header)
	if err != nil {
		return credentials{}, err
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return credentials{}, errors.New("the credentials service of this machine returned none")
	}
	return k, nil
}

// fetchMetadata queries the service at the URL at, which returns credentials. header is a name and a value, or empty.
// No error repeats the request or the response.
func fetchMetadata(ctx context.Context, method, at string, header [2]string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, nil)
	if err != nil {
		return nil, errors.New("the address of the credentials service is malformed")
	}
	if header[1] != "" {
		r.Header.Set(header[0], header[1])
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	if isMetadataHost(r.URL.Hostname()) {
		transport.Proxy = nil
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("get the credentials of this machine: %w", requestError(ctx, err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get the credentials of this machine: %w", &s3Error{status: response.StatusCode})
	}
	return readBody(ctx, response, maxMetadata)
}
