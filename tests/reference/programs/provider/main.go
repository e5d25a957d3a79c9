// A client and a server of provider.v1 over google.golang.org/grpc, driven by JSON lines: the judge of Paddock's own.
//
//	provider encode PROTO                   reads {"message", "value"}, prints {"bytes"} (hexadecimal)
//	provider client PROTO ADDRESS TLS NAME  reads {"method", "request"}, prints {"code", "message", "response"}
//	provider server PROTO TLS ANSWERS       prints {"port"}, then {"method", "request"} of each call; a line on stdin ends it gracefully
//	provider generate PROTO FOLDER PACKAGE PLUGIN...  writes Go code with plugins of protoc
//
// TLS is a folder with tls.crt, tls.key and ca.crt, or "-" for plain text. ANSWERS is a file that maps methods to {"response"},
// or {"code", "message"}, with "delay" in milliseconds. A method "health" asks the health service.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

type answer struct {
	Code     int             `json:"code"`
	Message  string          `json:"message"`
	Response json.RawMessage `json:"response"`
	Delay    int             `json:"delay"`
}

var (
	out     = json.NewEncoder(os.Stdout)
	outLock sync.Mutex
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func say(value any) {
	outLock.Lock()
	defer outLock.Unlock()
	must(0, out.Encode(value))
}

func load(path string) protoreflect.FileDescriptor {
	resolver := &protocompile.SourceResolver{ImportPaths: []string{filepath.Dir(path)}}
	compiler := protocompile.Compiler{Resolver: resolver}
	return must(compiler.Compile(context.Background(), filepath.Base(path)))[0]
}

func asJSON(message proto.Message) json.RawMessage {
	return must(protojson.MarshalOptions{UseProtoNames: true, UseEnumNumbers: true}.Marshal(message))
}

func encode(file protoreflect.FileDescriptor, line []byte) {
	var question struct {
		Message string
		Value   json.RawMessage
	}
	must(0, json.Unmarshal(line, &question))
	message := dynamicpb.NewMessage(file.Messages().ByName(protoreflect.Name(question.Message)))
	must(0, protojson.Unmarshal(question.Value, message))
	say(map[string]string{"bytes": hex.EncodeToString(must(proto.MarshalOptions{Deterministic: true}.Marshal(message)))})
}

func material(folder string) (tls.Certificate, *x509.CertPool) {
	pair := must(tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(filepath.Join(folder, "ca.crt"))))
	return pair, pool
}

func dial(address, folder, name string) *grpc.ClientConn {
	if folder == "-" {
		return must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	}
	pair, pool := material(folder)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13}
	return must(grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config))))
}

func call(conn *grpc.ClientConn, service protoreflect.ServiceDescriptor, line []byte) {
	var question struct {
		Method  string
		Request json.RawMessage
	}
	must(0, json.Unmarshal(line, &question))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var response proto.Message
	var err error
	if question.Method == "health" {
		request := &grpc_health_v1.HealthCheckRequest{}
		must(0, protojson.Unmarshal(question.Request, request))
		response, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, request)
	} else {
		method := service.Methods().ByName(protoreflect.Name(question.Method))
		request := dynamicpb.NewMessage(method.Input())
		must(0, protojson.Unmarshal(question.Request, request))
		response = dynamicpb.NewMessage(method.Output())
		err = conn.Invoke(ctx, fmt.Sprintf("/%s/%s", service.FullName(), method.Name()), request, response)
	}
	if err != nil {
		say(answer{Code: int(status.Code(err)), Message: status.Convert(err).Message()})
		return
	}
	say(answer{Response: asJSON(response)})
}

func handler(method protoreflect.MethodDescriptor, answers map[string]answer) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: string(method.Name()),
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := dynamicpb.NewMessage(method.Input())
			if err := decode(request); err != nil {
				return nil, err
			}
			say(map[string]any{"method": method.Name(), "request": asJSON(request)})
			found := answers[string(method.Name())]
			time.Sleep(time.Duration(found.Delay) * time.Millisecond)
			if found.Code != 0 {
				return nil, status.Error(codes.Code(found.Code), found.Message)
			}
			response := dynamicpb.NewMessage(method.Output())
			if found.Response != nil {
				must(0, protojson.Unmarshal(found.Response, response))
			}
			return response, nil
		},
	}
}

func serve(service protoreflect.ServiceDescriptor, folder, answersFile string) {
	var answers map[string]answer
	must(0, json.Unmarshal(must(os.ReadFile(answersFile)), &answers))
	var options []grpc.ServerOption
	if folder != "-" {
		pair, pool := material(folder)
		config := &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	description := &grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*any)(nil)}
	for index := range service.Methods().Len() {
		description.Methods = append(description.Methods, handler(service.Methods().Get(index), answers))
	}
	server.RegisterService(description, nil)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	say(map[string]int{"port": listener.Addr().(*net.TCPAddr).Port})
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		server.GracefulStop()
	}()
	must(0, server.Serve(listener))
}

func main() {
	file := load(os.Args[2])
	if os.Args[1] == "generate" {
		generate(file, os.Args[3], os.Args[4], os.Args[5:])
		return
	}
	service := file.Services().ByName("Provider")
	if os.Args[1] == "server" {
		serve(service, os.Args[3], os.Args[4])
		return
	}
	var conn *grpc.ClientConn
	if os.Args[1] == "client" {
		conn = dial(os.Args[3], os.Args[4], os.Args[5])
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if conn == nil {
			encode(file, lines.Bytes())
		} else {
			call(conn, service, lines.Bytes())
		}
	}
}
