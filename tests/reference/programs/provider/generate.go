package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// generate writes what the plugins of protoc make of a file into a folder, as one package.
func generate(file protoreflect.FileDescriptor, folder, pack string, plugins []string) {
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file.Path()},
		Parameter:      proto.String("paths=source_relative,M" + file.Path() + "=" + pack),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(file)},
	}
	for _, plugin := range plugins {
		command := exec.Command(plugin)
		command.Stdin, command.Stderr = bytes.NewReader(must(proto.Marshal(request))), os.Stderr
		response := &pluginpb.CodeGeneratorResponse{}
		must(0, proto.Unmarshal(must(command.Output()), response))
		for _, each := range response.File {
			must(0, os.WriteFile(filepath.Join(folder, each.GetName()), []byte(each.GetContent()), 0o600))
		}
	}
}
