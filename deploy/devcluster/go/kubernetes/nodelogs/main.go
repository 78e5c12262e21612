// nodelogs is the log endpoint of the fake nodes.
//
// kwok serves logs too, but a followed log of kwok never ends: its reader takes every container for running. This
// program hands the same reader that a kubelet uses (k8s.io/cri-client/pkg/logs) a runtime that knows when a
// container has exited, so timestamps, sinceTime, tailLines, limitBytes, follow and the end of the stream are a
// kubelet's. Everything but logs is passed on to kwok.
//
// Files: <root>/<namespace>/<pod>/<container>/0.log in CRI format, and beside it "exited" once the container is over.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/flushwriter"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // how a query becomes PodLogOptions
)

// A pod is Running a moment before its first log file is there.
const patience = 3 * time.Second

// containers answers the reader's one question: is this container still running? Its id is its directory.
type containers struct{ criapi.RuntimeService }

func (containers) ContainerStatus(_ context.Context, directory string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	state := runtimeapi.ContainerState_CONTAINER_RUNNING
	if _, err := os.Stat(filepath.Join(directory, "exited")); err == nil {
		state = runtimeapi.ContainerState_CONTAINER_EXITED
	} else if _, err := os.Stat(directory); err != nil {
		state = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: state}}, nil
}

func waitForFile(ctx context.Context, path string) bool {
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(path); err == nil {
			return true
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func serveLogs(root string) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		namespace, pod, container := request.PathValue("namespace"), request.PathValue("pod"), request.PathValue("container")
		for _, part := range []string{namespace, pod, container} {
			if part == "" || part == "." || part == ".." || strings.ContainsAny(part, `/\`) {
				http.Error(response, "bad name", http.StatusBadRequest)
				return
			}
		}
		options := &corev1.PodLogOptions{}
		if err := legacyscheme.ParameterCodec.DecodeParameters(request.URL.Query(), corev1.SchemeGroupVersion, options); err != nil {
			http.Error(response, "Unable to decode query: "+err.Error(), http.StatusBadRequest)
			return
		}
		directory := filepath.Join(root, namespace, pod, container)
		path := filepath.Join(directory, "0.log")
		if options.Previous {
			http.Error(response, fmt.Sprintf("previous terminated container %q in pod %q not found", container, pod), http.StatusBadRequest)
			return
		}
		if !waitForFile(request.Context(), path) {
			http.Error(response, fmt.Sprintf("container %q in pod %q is waiting to start: ContainerCreating", container, pod), http.StatusBadRequest)
			return
		}
		out := flushwriter.Wrap(response)
		response.Header().Set("Transfer-Encoding", "chunked")
		options.Container = container
		err := crilogs.ReadLogs(request.Context(), nil, path, directory, crilogs.NewLogOptions(options, time.Now()), containers{}, out, out)
		if err != nil && request.Context().Err() == nil {
			log.Printf("%s/%s %s: %v", namespace, pod, container, err)
			// As a kubelet does: the stream breaks off, it does not end cleanly.
			panic(http.ErrAbortHandler)
		}
	}
}

func run() error {
	listen := flag.String("listen", "", "address and port")
	root := flag.String("root", "", "directory of the logs")
	cert := flag.String("tls-cert-file", "", "serving certificate")
	key := flag.String("tls-private-key-file", "", "its key")
	clientCA := flag.String("client-ca-file", "", "who may sign client certificates")
	forward := flag.String("forward", "", "http address of kwok")
	flag.Parse()

	pool := x509.NewCertPool()
	pem, err := os.ReadFile(*clientCA)
	if err != nil {
		return err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New(*clientCA + " holds no certificate")
	}
	target, err := url.Parse(*forward)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /containerLogs/{namespace}/{pod}/{container}", serveLogs(*root))
	mux.Handle("/", httputil.NewSingleHostReverseProxy(target))
	server := &http.Server{
		Addr:              *listen,
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
	}
	return server.ListenAndServeTLS(*cert, *key)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
