package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nowSeconds is the current time as the API server returns it.
func nowSeconds() metav1.Time { return metav1.Now().Rfc3339Copy() }

var updateOptions = metav1.UpdateOptions{}

// startContainer prepares the files of a pod's container and starts its process. With an error it returns the reason why the container waits.
func (n *Nodes) startContainer(ctx context.Context, s *sandbox, pod *corev1.Pod, program Program) (started *running, reason string, err error) {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 {
		return nil, "CreateContainerError", errors.New("a pod that runs as a process has one container, and no init containers")
	}
	container := &pod.Spec.Containers[0]
	path, ok := program(container)
	if !ok {
		return nil, "ErrImagePull", fmt.Errorf("no program of this machine stands for the image %q with the command %q", container.Image, container.Command)
	}
	root := filepath.Join(s.folder, "root")
	if err := n.layOut(ctx, s, pod, container, root); err != nil {
		return nil, "CreateContainerConfigError", err
	}
	environment, err := n.environment(ctx, s, pod, container, root)
	if err != nil {
		return nil, "CreateContainerConfigError", err
	}
	arguments := slices.Clone(container.Args)
	if len(container.Command) > 0 {
		arguments = slices.Concat(container.Command[1:], arguments)
	}
	for i, argument := range arguments {
		arguments[i] = expand(argument, environment)
	}
	folder := filepath.Join(root, container.WorkingDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, "CreateContainerError", err
	}
	key := pod.Namespace + "/" + pod.Name
	started, err = start(path, append(arguments, "--root", root), environment, folder, root, s.log, n.options.Attributes(), func() { n.queue.Add(key) })
	if err != nil {
		return nil, "CreateContainerError", err
	}
	started.began = started.began.Rfc3339Copy()
	return started, "", nil
}

// expand replaces $(NAME) by variables of the environment.
func expand(text string, environment []string) string {
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		text = strings.ReplaceAll(text, "$("+name+")", value)
	}
	return text
}

// environment returns the environment of a container.
func (n *Nodes) environment(ctx context.Context, s *sandbox, pod *corev1.Pod, container *corev1.Container, root string) ([]string, error) {
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "TMPDIR=" + filepath.Join(root, "tmp"), "HOSTNAME=" + pod.Name}
	if len(container.EnvFrom) > 0 {
		return nil, errors.New("envFrom is not simulated")
	}
	for _, variable := range container.Env {
		value, set := expand(variable.Value, environment), true
		if source := variable.ValueFrom; source != nil {
			var err error
			if value, set, err = n.valueFrom(ctx, s, pod, source); err != nil {
				return nil, fmt.Errorf("the environment variable %s: %w", variable.Name, err)
			}
		}
		if set {
			environment = append(environment, variable.Name+"="+value)
		}
	}
	return environment, nil
}

// valueFrom returns the value of an environment variable; set is false if its source is optional and does not exist.
func (n *Nodes) valueFrom(ctx context.Context, s *sandbox, pod *corev1.Pod, source *corev1.EnvVarSource) (value string, set bool, err error) {
	switch {
	case source.FieldRef != nil:
		value, err = podField(pod, s.ip, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		files, err := n.secret(ctx, pod.Namespace, ref.Name, []corev1.KeyToPath{{Key: ref.Key, Path: ref.Key}}, ref.Optional)
		value, set := files[ref.Key]
		return string(value), set, err
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		files, err := n.configMap(ctx, pod.Namespace, ref.Name, []corev1.KeyToPath{{Key: ref.Key, Path: ref.Key}}, ref.Optional)
		value, set := files[ref.Key]
		return string(value), set, err
	}
	return "", false, errors.New("this kind of source is not simulated")
}

// podField returns a field of a pod that the downward API has.
func podField(pod *corev1.Pod, ip, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return ip, nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels": pod.Labels, "metadata.annotations": pod.Annotations} {
		if name, is := strings.CutPrefix(path, prefix+"['"); is {
			return values[strings.TrimSuffix(name, "']")], nil
		}
	}
	return "", fmt.Errorf("the field %s is not simulated", path)
}

// layOut makes the root folder of a container anew.
func (n *Nodes) layOut(ctx context.Context, s *sandbox, pod *corev1.Pod, container *corev1.Container, root string) error {
	// Links are removed, not what they lead to.
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	for _, folder := range []string{filepath.Join(root, "tmp"), filepath.Dir(filepath.Join(root, messagePath(container)))} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	mounts := slices.Clone(container.VolumeMounts)
	// Outer mounts come before those inside them.
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, mount := range mounts {
		path, err := n.volume(ctx, s, pod, mount.Name, false)
		if err != nil {
			return fmt.Errorf("mounting the volume %s: %w", mount.Name, err)
		}
		if err := link(filepath.Join(path, mount.SubPath), filepath.Join(root, mount.MountPath)); err != nil {
			return err
		}
	}
	for _, device := range container.VolumeDevices {
		path, err := n.volume(ctx, s, pod, device.Name, true)
		if err != nil {
			return fmt.Errorf("mapping the volume %s: %w", device.Name, err)
		}
		if err := link(path, filepath.Join(root, device.DevicePath)); err != nil {
			return err
		}
	}
	return nil
}

// link makes a symbolic link, and replaces an empty folder.
func link(to, at string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(to, at)
}

// volume returns the path of a volume of a pod.
func (n *Nodes) volume(ctx context.Context, s *sandbox, pod *corev1.Pod, name string, block bool) (string, error) {
	i := slices.IndexFunc(pod.Spec.Volumes, func(one corev1.Volume) bool { return one.Name == name })
	if i < 0 {
		return "", errors.New("the pod has no such volume")
	}
	volume := &pod.Spec.Volumes[i]
	if claim := volume.PersistentVolumeClaim; claim != nil {
		return n.claim(ctx, pod.Namespace, claim.ClaimName, block)
	}
	path := filepath.Join(s.folder, "volumes", name)
	if volume.EmptyDir != nil {
		return path, os.MkdirAll(path, 0o700)
	}
	files, err := n.files(ctx, s, pod, volume)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(path); err != nil {
		return "", err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	for name, content := range files {
		file := filepath.Join(path, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return "", err
		}
	}
	return path, nil
}

// claim returns the path of the volume of a claim, which has to have the expected mode.
func (n *Nodes) claim(ctx context.Context, namespace, name string, block bool) (string, error) {
	if n.options.Volumes == nil {
		return "", errors.New("these nodes have no storage")
	}
	path, isBlock, err := n.options.Volumes.Path(ctx, namespace, name)
	if err == nil && isBlock != block {
		err = fmt.Errorf("the claim %s is a block volume: %t; as volumeDevices: %t", name, isBlock, block)
	}
	return path, err
}

// files returns the files of a volume that consists of objects.
func (n *Nodes) files(ctx context.Context, s *sandbox, pod *corev1.Pod, volume *corev1.Volume) (map[string][]byte, error) {
	switch {
	case volume.Secret != nil:
		return n.secret(ctx, pod.Namespace, volume.Secret.SecretName, volume.Secret.Items, volume.Secret.Optional)
	case volume.ConfigMap != nil:
		return n.configMap(ctx, pod.Namespace, volume.ConfigMap.Name, volume.ConfigMap.Items, volume.ConfigMap.Optional)
	case volume.DownwardAPI != nil:
		return downward(pod, s.ip, volume.DownwardAPI.Items)
	case volume.Projected == nil:
		return nil, errors.New("this kind of volume is not simulated")
	}
	all := map[string][]byte{}
	for _, source := range volume.Projected.Sources {
		files, err := n.projected(ctx, s, pod, &source)
		if err != nil {
			return nil, err
		}
		for name, content := range files {
			all[name] = content
		}
	}
	return all, nil
}

func (n *Nodes) projected(ctx context.Context, s *sandbox, pod *corev1.Pod, source *corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case source.Secret != nil:
		return n.secret(ctx, pod.Namespace, source.Secret.Name, source.Secret.Items, source.Secret.Optional)
	case source.ConfigMap != nil:
		return n.configMap(ctx, pod.Namespace, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
	case source.DownwardAPI != nil:
		return downward(pod, s.ip, source.DownwardAPI.Items)
	case source.ServiceAccountToken == nil:
		return nil, errors.New("this kind of projected volume is not simulated")
	}
	token := source.ServiceAccountToken
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: token.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if token.Audience != "" {
		request.Spec.Audiences = []string{token.Audience}
	}
	issued, err := n.kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of the ServiceAccount %s: %w", pod.Spec.ServiceAccountName, err)
	}
	return map[string][]byte{token.Path: []byte(issued.Status.Token)}, nil
}

func downward(pod *corev1.Pod, ip string, items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, item := range items {
		if item.FieldRef == nil {
			return nil, fmt.Errorf("the file %s has a source that is not simulated", item.Path)
		}
		value, err := podField(pod, ip, item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		files[item.Path] = []byte(value)
	}
	return files, nil
}

func (n *Nodes) secret(ctx context.Context, namespace, name string, items []corev1.KeyToPath, optional *bool) (map[string][]byte, error) {
	found, err := n.kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Secret %s: %s", name, err.Error())
	}
	return selected("Secret "+name, found.Data, items, optional)
}

func (n *Nodes) configMap(ctx context.Context, namespace, name string, items []corev1.KeyToPath, optional *bool) (map[string][]byte, error) {
	found, err := n.kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s: %s", name, err.Error())
	}
	data := found.BinaryData
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range found.Data {
		data[key] = []byte(value)
	}
	return selected("ConfigMap "+name, data, items, optional)
}

// selected returns the content of keys by their paths; all keys if none is selected.
func selected(what string, data map[string][]byte, items []corev1.KeyToPath, optional *bool) (map[string][]byte, error) {
	if len(items) == 0 {
		return data, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		content, has := data[item.Key]
		if !has && (optional == nil || !*optional) {
			return nil, fmt.Errorf("the %s has no key %s", what, item.Key)
		}
		if has {
			files[item.Path] = content
		}
	}
	return files, nil
}
