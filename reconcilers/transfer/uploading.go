package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// reception is the suffix of the Job and Secret of the mover that receives a package.
const reception = "-receive"

// uploaded reports whether the package of an import is where a mover can read it.
func (i *importing) uploaded() bool {
	return i.object.Spec.Source.Upload == nil || i.object.Status.Upload != nil && i.object.Status.Upload.CompletionTime != nil
}

// source returns where movers read the package: an uploaded one is in a volume.
func (i *importing) source() *v1beta1.ImportSource {
	if i.object.Spec.Source.Upload == nil {
		return &i.object.Spec.Source
	}
	return &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Name: i.owner.called(result), Path: transfer.UploadFile}}
}

// receive has the user upload the package to a mover, which writes it into a volume.
func (i *importing) receive(ctx context.Context) (time.Duration, error) {
	name := i.owner.called(reception)
	seen, err := i.observe(ctx, i.owner, name, i.who)
	if err != nil {
		return 0, err
	}
	if seen.missing {
		if err := i.authorized(ctx); err != nil {
			return 0, err
		}
		if err := i.checkName(ctx); err != nil {
			return 0, err
		}
		if err := i.startReception(ctx, name); err != nil {
			return 0, err
		}
	}
	if err := failure(seen.state); err != nil {
		return 0, err
	}
	size := i.object.Spec.Source.Upload.Size
	done := i.finished(ctx, seen, v1beta1.TransferUploading, fmt.Sprintf("waiting for the package of %d bytes, which stencilctl ova upload sends", size))
	if seen.state != nil {
		if i.object.Status.Upload == nil {
			i.object.Status.Upload = &v1beta1.ImportUpload{}
		}
		i.object.Status.Upload.URL = "https://" + i.owner.serviceHost() + transfer.UploadPath
		if i.object.Status.Upload.ExternalURL, err = i.externalURL(ctx, transfer.UploadPath); err != nil {
			return 0, err
		}
		i.object.Status.Upload.TokenSecretRef = &corev1.LocalObjectReference{Name: i.owner.called(access)}
		i.object.Status.Upload.Received = seen.state.Received
	}
	if !done {
		return pollInterval, nil
	}
	now := metav1.NewTime(i.clock.Now())
	i.object.Status.Upload = &v1beta1.ImportUpload{Received: size, CompletionTime: &now}
	// The timeout begins anew: the upload was up to the user.
	i.object.Status.StartTime = &now
	i.progressing(v1beta1.TransferPending, v1beta1.ReasonReconciling, "the package has arrived")
	if err := i.write(ctx); err != nil {
		return 0, err
	}
	return time.Millisecond, errors.Join(i.release(ctx, name, seen.ip), i.closeReception(ctx))
}

// startReception creates the mover that receives the package, its volume, and what users need to reach it.
func (i *importing) startReception(ctx context.Context, name string) error {
	upload := i.object.Spec.Source.Upload
	if limit := i.settings.MaxBytes; limit > 0 && upload.Size > limit {
		return &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("the package has %d bytes, and at most %d are allowed", upload.Size, limit)}
	}
	filesystem := v1beta1.ImportStorage{StorageClassName: upload.StorageClassName, VolumeMode: new(corev1.PersistentVolumeFilesystem)}
	chosen, err := i.storageOf(ctx, filesystem, upload.Size+packageSlack, 0)
	if err != nil {
		return err
	}
	task := i.task(transfer.Receive)
	task.Source, task.Upload = nil, &transfer.Upload{Size: upload.Size, Token: i.who.downloadToken}
	j := job{secret: name, result: i.owner.called(result)}
	secret, digest, err := i.owner.secret(j.secret, task, i.who)
	if err != nil {
		return err
	}
	j.digest = digest
	if err := replace(ctx, i.cluster, secret); err != nil {
		return err
	}
	objects := append(i.owner.offered(i.who, &i.settings), i.owner.claim(j.result, chosen.size, chosen.class, chosen.modes, &chosen.mode), i.networkPolicy(), i.owner.job(name, j, &i.settings))
	for _, object := range objects {
		if err := ensure(ctx, i.cluster, object); err != nil {
			return err
		}
	}
	return nil
}

// networkPolicy returns the NetworkPolicy of the movers, to which users connect if they upload the package.
func (i *importing) networkPolicy() client.Object {
	return i.owner.networkPolicy(i.object.Spec.Source.Upload != nil, &i.settings)
}

// closeReception deletes what users need to reach the mover that receives a package.
func (i *importing) closeReception(ctx context.Context) error {
	if i.object.Spec.Source.Upload == nil {
		return nil
	}
	task := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.object.Namespace, Name: i.owner.called(reception)}}
	return errors.Join(i.deleteJob(ctx, i.owner, i.owner.called(reception)), i.withdraw(ctx), remove(ctx, i.cluster, task))
}

// forget deletes the uploaded package, and what received it.
func (i *importing) forget(ctx context.Context) error {
	if i.object.Spec.Source.Upload == nil {
		return nil
	}
	if i.object.Status.Upload != nil {
		i.object.Status.Upload.URL, i.object.Status.Upload.ExternalURL, i.object.Status.Upload.TokenSecretRef = "", "", nil
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: i.object.Namespace, Name: i.owner.called(result)}}
	return errors.Join(i.closeReception(ctx), remove(ctx, i.cluster, claim))
}
